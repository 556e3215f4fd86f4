// Package schedule is the arithmetic of a ScheduledJob's schedule: at which seconds is it due?
//
// A Schedule is parsed once, from the fields schedule and timeZone and from the object's UID and creation time. After
// that it answers four questions about its nominal times, which are whole seconds: which is next, which was last, how many
// lie between two times, and which are they. It never asks what time it is now.
//
//	doc.go       what daylight saving does
//	parse.go     text to sets of numbers, with robfig/cron's parser, and what is refused
//	hash.go      H
//	schedule.go  the four questions
//	wall.go      which readings of a wall clock match, and how many: sets and months, no zone
//	zone.go      when a wall clock in a zone shows them
//	every.go     @every, which knows neither
//
// # Daylight saving
//
// Twice a year a wall clock jumps. Where it jumps forward, times are missing (a gap); where it jumps back, times come
// twice (a fold). Here is the wall clock of Berlin, drawn against the real time:
//
//	   gap, in March                       fold, in October
//
//	wall                                wall
//	 4:00 |           /                  4:00 |                /
//	      |         /                         |              /
//	 3:00 |       A                      3:00 |      /|    /
//	      |       |                           |    B  |  C
//	 2:00 |      /|                      2:00 |  /    |/
//	      |    /                              |/
//	      +---------------> real time         +-----------------> real time
//
// What a schedule makes of that is decided by its hour field, as in Vixie cron (cron(8) of Debian, "local time changes"):
//
//   - An hour field that starts with * follows the wall clock. */30 * * * * has no 2:30 in March and fires four times
//     between 2:00 and 3:00 in October, which is every half hour of real time in both.
//   - Any other hour field (2, 1-5, 0,12, H) means a time of day, and every time of day comes exactly once. 30 2 * * * is
//     due at A in March, the first instant after the gap, and only at B in October, the first of the two.
//
// Both are one rule each, and zone.go is no more than these. A wall clock time w that matches the fields is due
//
//   - following the wall clock: whenever the clock shows w;
//   - otherwise: when the clock has first reached w, that is, first shows w or anything later.
//
// They need no case for a transition of half an hour (Lord Howe), of a whole day (Samoa skipped 2011-12-30), of odd
// seconds (local mean time), or for several in a day. Two times that are due at the same instant are one.
package schedule
