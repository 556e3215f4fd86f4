package act

import (
	"reflect"
	"time"
)

// weigh returns how many bytes of memory an object takes with all that it points to, a little too many rather than too few. Its
// encoded size would not tell: an element of a list that is written as two bytes may take fifty in memory, and a user may list as many as fit
// into a request.
func weigh(object any) int {
	v := reflect.ValueOf(object)
	bytes := beyond(v) + slot
	return bytes + bytes/8 // the allocator rounds up
}

// slot is what a cache takes for each object: its entry, and the places in the map and the lists of shelves.
const slot = 512

var timeType = reflect.TypeFor[time.Time]()

// beyond returns what the value takes beyond the bytes of the variable that holds it.
func beyond(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		return (v.Len() + 15) &^ 15
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return int(v.Elem().Type().Size()) + beyond(v.Elem())
		}
	case reflect.Slice:
		bytes = v.Cap() * int(v.Type().Elem().Size())
		for i := 0; i < v.Len() && !flat(v.Type().Elem()); i++ {
			bytes += beyond(v.Index(i))
		}
	case reflect.Map:
		if !v.IsNil() {
			bytes = mapBytes(v)
			for each := v.MapRange(); each.Next(); {
				bytes += beyond(each.Key()) + beyond(each.Value())
			}
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && v.Type() != timeType; i++ { // a time points to a zone, which all share
			bytes += beyond(v.Field(i))
		}
	}
	return bytes
}

// flat reports whether a value of that type, such as a byte, points to nothing.
func flat(t reflect.Type) bool { return t.Kind() <= reflect.Complex128 }

// mapBytes is what a map takes without what its keys and values point to: groups of eight places, at least one, and more than half of
// the places may be empty.
func mapBytes(m reflect.Value) int {
	return 48 + max(8, 5*m.Len()/2)*(1+int(m.Type().Key().Size())+int(m.Type().Elem().Size()))
}
