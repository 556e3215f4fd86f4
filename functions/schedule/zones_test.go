package schedule_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"go/build"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

// database has the zones of the IANA database of the Go that runs the test, by name: the same on every machine.
var database = sync.OnceValues(func() (map[string]*time.Location, error) {
	archive, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	zones := map[string]*time.Location{}
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		file, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(file)
		if err != nil {
			return nil, err
		}
		if zones[f.Name], err = time.LoadLocationFromTZData(f.Name, data); err != nil {
			return nil, err
		}
	}
	return zones, nil
})

func zones(t testing.TB) map[string]*time.Location {
	t.Helper()
	all, err := database()
	if err != nil {
		t.Fatalf("the zones of the Go toolchain: %v", err)
	}
	return all
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, ok := zones(t)[name]
	if !ok {
		t.Fatalf("no zone %s", name)
	}
	return loc
}

// madeUp is a zone whose clock is changed on sixty days from 1902 to 2037, up to four times on each.
func madeUp(r *rand.Rand) *time.Location {
	var instants []int64
	for range 60 {
		u := r.Int64N(1<<32-1<<20) - 1<<31
		for range 1 + r.IntN(4) {
			instants = append(instants, u)
			u += 1 + r.Int64N(8*60*60)
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)

	// A TZif file of version 1 (RFC 9636): a header, the transitions, the type of each, and the types, here one for each.
	var b bytes.Buffer
	write := func(v any) { _ = binary.Write(&b, binary.BigEndian, v) }
	b.WriteString("TZif" + strings.Repeat("\x00", 16))
	write([6]int32{0, 0, 0, int32(len(instants)), 256, 4})
	for _, u := range instants {
		write(int32(u))
	}
	for i := range instants {
		write(uint8(i%255 + 1))
	}
	offset := 0
	for range 256 {
		write(int32(offset))
		b.WriteString("\x00\x00")
		const most = 15 * 60 * 60
		switch r.IntN(4) {
		case 0:
			offset = r.IntN(2*most) - most
		case 1:
			offset = -offset
		default:
			offset = min(max(offset+(r.IntN(9)-4)*1800, -most), most)
		}
	}
	b.WriteString("XXX\x00")
	loc, err := time.LoadLocationFromTZData("made up", b.Bytes())
	if err != nil {
		panic(err)
	}
	return loc
}

// TestSpansTileTime: every instant lies in one span, and all instants of a span agree on its bounds and its offset, in every
// zone. Time.ZoneBounds alone does not ensure this (see spanAt).
func TestSpansTileTime(t *testing.T) {
	const day = 24 * 60 * 60
	for name, loc := range zones(t) {
		random := rand.New(rand.NewPCG(1, 1))
		check := func(u int64) {
			t.Helper()
			from, to, offset := schedule.SpanAt(loc, u)
			if u < from || u >= to {
				t.Fatalf("%s: %v is not in its span, %v to %v", name, at(u), at(from), at(to))
			}
			for _, v := range []int64{from, to - 1, from + random.Int64N(to-from)} {
				if _, o := at(v).In(loc).Zone(); int64(o) != offset {
					t.Fatalf("%s: the offset of the span at %v is %ds, and %ds at %v", name, at(u), offset, o, at(v))
				}
				if f, u, o := schedule.SpanAt(loc, v); f != from || u != to || o != offset {
					t.Fatalf("%s: %v lies in %v to %v, and in %v to %v", name, at(v), at(from), at(to), at(f), at(u))
				}
			}
		}
		for range 50 {
			check(random.Int64N(300*365*day) - 150*365*day)
		}
		for year := 1996; year < 2110; year++ {
			newYear := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
			check(newYear)
			check(newYear - 1)
			check(newYear - random.Int64N(2*day))
		}
	}
}

func at(u int64) time.Time { return time.Unix(u, 0).UTC() }
