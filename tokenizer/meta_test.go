package tokenizer_test

import (
	"errors"
	"fmt"
)

// meta is metadata in memory.
type meta map[string]any

func value[T any](m meta, key string) (T, error) {
	v, ok := m[key].(T)
	if !ok {
		return v, fmt.Errorf("%s: %w", key, errNoValue)
	}
	return v, nil
}

var errNoValue = errors.New("missing or of another type")

func (m meta) Has(key string) bool                  { _, ok := m[key]; return ok }
func (m meta) String(key string) (string, error)    { return value[string](m, key) }
func (m meta) Strings(key string) ([]string, error) { return value[[]string](m, key) }
func (m meta) Uint(key string) (uint64, error)      { return value[uint64](m, key) }
func (m meta) Ints(key string) ([]int64, error)     { return value[[]int64](m, key) }
func (m meta) Floats(key string) ([]float32, error) { return value[[]float32](m, key) }
func (m meta) Bool(key string) (bool, error)        { return value[bool](m, key) }
