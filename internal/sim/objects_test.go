package sim

import (
	"reflect"
	"testing"

	"github.com/jobstream/jobstream/events"
)

// TestFunctionsSeeEveryOption: functions see a simulated Job as its object shows it. If jobAnnotations does not write the annotation of
// an option, the option has no effect in any world or transcript, although their Jobs have it.
func TestFunctionsSeeEveryOption(t *testing.T) {
	for option := range reflect.TypeFor[events.Options]().Fields() {
		if option.Name == "ParentSpan" || option.Name == "Ignored" { // no simulated Job has the first; the other is the projection's answer
			continue
		}
		t.Run(option.Name, func(t *testing.T) {
			j := events.Job{Name: "pi", Indexed: true, Completions: new(int32(1))}
			choose := reflect.ValueOf(&j.Options).Elem().FieldByIndex(option.Index)
			if choose.Kind() == reflect.Pointer {
				choose.Set(reflect.New(choose.Type().Elem()))
				choose = choose.Elem()
			}
			switch {
			case choose.CanInt():
				choose.SetInt(1)
			case choose.Kind() == reflect.Bool:
				choose.SetBool(true)
			case choose.Kind() == reflect.String:
				choose.SetString("values")
			default:
				t.Fatalf("this test has no value for an option of type %v: add one", choose.Type())
			}
			if got := observeJob(j).Options; !reflect.DeepEqual(got, j.Options) {
				t.Errorf("the Job has %+v, and functions see %+v: write its annotation in jobAnnotations, in internal/sim/objects.go", j.Options, got)
			}
		})
	}
}
