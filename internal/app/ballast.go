package app

// ballast is memory that is never touched: it takes address space and no RAM. The garbage collector counts it when it decides how
// much garbage may gather before it runs again, which otherwise would be a few megabytes for a program that keeps as little as the
// trigger: it would collect many times a second under load. GOMEMLIMIT counts it, too.
var ballast []byte

// ballastBytes lets 32 MiB of garbage gather at a GOGC of 50.
const ballastBytes = 64 << 20

// TakeBallast makes the garbage collector of this process run less often. It is for programs that keep less than 100 MiB.
func TakeBallast() { ballast = make([]byte, ballastBytes) }
