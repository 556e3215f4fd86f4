// Package schedule computes at which seconds the schedule of a ScheduledJob is due.
//
// A Schedule is parsed once, from the fields schedule or schedules, exclude and timeZone and from the object's UID and creation time. It then answers
// four questions about its nominal times, which are whole seconds: which is next, which was last, how many lie between two times,
// and which are they. It never reads a clock.
//
//	doc.go       what daylight saving does
//	parse.go     parses text into sets of numbers, with robfig/cron's parser, and rejects mistakes
//	hash.go      H
//	schedule.go  the four questions
//	wall.go      which readings of a wall clock match, and how many, without a zone
//	zone.go      when a wall clock in a zone shows these readings
//	every.go     @every, which needs neither a wall clock nor a zone
//	list.go      parses several schedules, and what they leave out
//	mix.go       which readings any of several has and none excludes
//
// # Daylight saving
//
// Twice a year a wall clock jumps. If it jumps forward, times are missing (a gap); if it jumps back, times occur twice (a fold).
// This is the wall clock of Berlin, drawn against the real time:
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
// The hour field of a schedule determines what happens then, as in Vixie cron (cron(8) of Debian, "local time changes"):
//
//   - An hour field that starts with * follows the wall clock. */30 * * * * has no 2:30 in March and fires four times
//     between 2:00 and 3:00 in October, which is every half hour of real time in both.
//   - Any other hour field (2, 1-5, 0,12, H) means a time of day, and every time of day comes exactly once. 30 2 * * * is
//     due at A in March, the first instant after the gap, and only at B in October, the first of the two.
//
// Each of the two is one rule, and zone.go implements only these. A wall clock time w that matches the fields is due
//
//   - following the wall clock: whenever the clock shows w;
//   - otherwise: when the clock has first reached w, that is, first shows w or anything later.
//
// They need no special case for a transition of half an hour (Lord Howe), of a whole day (Samoa skipped 2011-12-30), of odd
// seconds (local mean time), or for several in a day. Two times that are due at the same instant are one.
package schedule
