package program

// An Op is one of the operation types of this package. Units switch over the
// concrete types; there are no others.
type Op interface {
	// Name is the operation's short name, as in traces.
	Name() string
}

// Embed looks up a row of Table for the token of each row, takes its columns
// [Col, Col+Out.Width) and multiplies them by Scale.
type Embed struct {
	Table Weight
	Col   int
	Out   View
	Scale float32
}

// MatMul is a product with a weight: Out[r] = W · In[r] + Bias. Bias may be nil.
type MatMul struct {
	W    Weight
	In   View
	Out  View
	Bias []float32
}

// RMSNorm divides each group of Group columns by its root mean square,
// x / sqrt(mean(x²) + Eps), and multiplies by Weight (Group values, or nil for
// none); Zhang and Sennrich 2019. In and Out may be the same view.
type RMSNorm struct {
	In, Out View
	Group   int
	Weight  []float32
	Eps     float32
}

// Rope rotates pairs of values in each head of HeadDim columns by angles that
// grow with the position: pair i turns by position·Freqs[i] (Su et al. 2021).
// A frequency of zero leaves the pair as it is. Split-half pairs are
// (i, i+HeadDim/2); interleaved ones are (2i, 2i+1). Frequencies carry the
// model's base, scaling and factors already. The cosine and the sine are
// multiplied by Magnitude.
type Rope struct {
	X           View
	HeadDim     int
	Freqs       []float64 // at most HeadDim/2; pairs beyond do not rotate
	Magnitude   float32
	Interleaved bool
}

// Store appends the rows K and V to a cache at the rows' positions, rounded to
// the cache's type. The cache is one the program owns.
type Store struct {
	K, V  View
	Cache int
}

// Attention is causal grouped-query attention of the rows Q over a cache:
// Heads query heads share the cache's KVHeads in equal groups, scores are
// Scale·(q·k), a query at position p sees positions (p-Window, p].
type Attention struct {
	Q, Out View
	Cache  int
	Heads  int
	Scale  float32
}

// Activation is the gate function of a Gated operation.
type Activation uint8

const (
	// GELU is the tanh form: 0.5x(1 + tanh(sqrt(2/π)(x + 0.044715x³)))
	// (Hendrycks and Gimpel 2016).
	GELU Activation = iota
	// SiLU is x / (1 + exp(-x)).
	SiLU
)

func (a Activation) String() string {
	if a == SiLU {
		return "silu"
	}
	return "gelu"
}

// Gated is Out = act(Gate) · Up, value by value (Shazeer 2020). Out may be
// Gate or Up.
type Gated struct {
	Act           Activation
	Gate, Up, Out View
}

// Add is Out = A + B. Out may be A or B.
type Add struct {
	A, B, Out View
}

// Scale multiplies X by Factor in place.
type Scale struct {
	X      View
	Factor float32
}

// Softcap bounds X to (-Cap, Cap) in place: Cap·tanh(x/Cap).
type Softcap struct {
	X   View
	Cap float32
}

// Narrow copies the wanted rows of In, a view of all rows, to Out, a view of
// wanted rows.
type Narrow struct {
	In, Out View
}

func (Embed) Name() string     { return "embed" }
func (MatMul) Name() string    { return "matmul" }
func (RMSNorm) Name() string   { return "rmsnorm" }
func (Rope) Name() string      { return "rope" }
func (Store) Name() string     { return "store" }
func (Attention) Name() string { return "attention" }
func (Gated) Name() string     { return "gated" }
func (Add) Name() string       { return "add" }
func (Scale) Name() string     { return "scale" }
func (Softcap) Name() string   { return "softcap" }
func (Narrow) Name() string    { return "narrow" }
