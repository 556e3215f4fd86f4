package events

// CutTrace is for tests with hashes that never occur.
var CutTrace = cutTrace
