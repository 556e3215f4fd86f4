package events

// CutTrace is for hashes that nobody will ever see.
var CutTrace = cutTrace
