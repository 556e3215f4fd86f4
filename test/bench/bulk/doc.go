// Package bulk makes very many objects at once, and observes what becomes of them: what the benchmarks of schedules, of Pods and of a big
// cluster share, as package report is what all of them share.
//
//	cluster.go         a system with the clients that this needs
//	make.go            objects, some at a time
//	see.go             a watch that hands each object to a function
//	observations.go    which objects have been seen as they should be
//	wait.go            waiting for that, as long as every part of the system lives
//
// A client that creates and watches thousands of objects is itself a load on the machine that it measures. So requests are 32 at a time
// and no more, a watch keeps times instead of objects, and it asks for metadata alone where that suffices.
package bulk
