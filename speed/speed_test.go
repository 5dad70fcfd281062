package speed

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatistics(t *testing.T) {
	for _, test := range []struct {
		name                    string
		x                       []float64
		mean, deviation, median float64
	}{
		{"nothing", nil, 0, 0, 0},
		{"one", []float64{3}, 3, 0, 3},
		{"two", []float64{4, 2}, 3, math.Sqrt2, 3},
		{"odd", []float64{9, 1, 2}, 4, math.Sqrt(19), 2},
		{"even", []float64{2, 4, 4, 4, 5, 5, 7, 9}, 5, math.Sqrt(32. / 7), 4.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := append([]float64(nil), test.x...)
			got := [3]float64{Mean(test.x), Deviation(test.x), Median(test.x)}
			for i, want := range [3]float64{test.mean, test.deviation, test.median} {
				if math.Abs(got[i]-want) > 1e-12 {
					t.Errorf("mean, deviation, median %v, want %v %v %v", got, test.mean, test.deviation, test.median)
				}
			}
			if !cmp.Equal(before, test.x) {
				t.Errorf("the values were changed to %v", test.x)
			}
		})
	}
}

func TestRates(t *testing.T) {
	got := Rates(512, []time.Duration{time.Second, 500 * time.Millisecond, 0})
	if want := []float64{512, 1024, 0}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Nanoseconds([]time.Duration{time.Microsecond}); !cmp.Equal(got, []float64{1000}) {
		t.Errorf("got %v", got)
	}
}

func TestResult(t *testing.T) {
	prompt := Result{
		Test: Test{Prompt: 10, Streams: 4}, Samples: []time.Duration{time.Second, 3 * time.Second},
		Work: 100, Read: []float64{1e9}, Multiply: []float64{400, 100, 200},
	}
	if c, s := prompt.Ceiling(), prompt.Share(); c != 200 || s != 0.25 {
		t.Errorf("100 operations in 2 s on average: ceiling %v, share %v; want 200 and 0.25", c, s)
	}
	if got, want := prompt.Rates(), []float64{10, 10. / 3}; !cmp.Equal(got, want) {
		t.Errorf("rates of a prompt, which has one stream: %v, want %v", got, want)
	}
	decode := Result{Test: Test{Generate: 10, Streams: 4}, Samples: []time.Duration{2 * time.Second}, Work: 100, Read: []float64{100}}
	if s := decode.Share(); s != 0.5 {
		t.Errorf("100 bytes in 2 s at 100 bytes/s: share %v", s)
	}
	if got := decode.Rates(); !cmp.Equal(got, []float64{20.}) {
		t.Errorf("10 tokens of 4 streams in 2 s: %v", got)
	}
	if (Result{}).Share() != 0 {
		t.Error("nothing has a share")
	}
}

func TestName(t *testing.T) {
	for _, test := range []struct {
		test      Test
		name      string
		positions int
	}{
		{Test{Prompt: 512}, "pp512", 512},
		{Test{Generate: 128, Depth: 4096}, "tg128 @ d4096", 4224},
	} {
		if got := test.test.Name(); got != test.name || test.test.Positions() != test.positions {
			t.Errorf("got %q with %d positions, want %q with %d", got, test.test.Positions(), test.name, test.positions)
		}
	}
}
