package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// appendString appends a length and the bytes of s.
func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// encode returns the type of a Go value and its bytes in the file; depth counts the arrays around it.
func encode(value any, depth int) (ValueType, []byte, error) {
	le := binary.LittleEndian
	switch v := value.(type) {
	case uint8:
		return Uint8, []byte{v}, nil
	case int8:
		return Int8, []byte{byte(v)}, nil
	case uint16:
		return Uint16, le.AppendUint16(nil, v), nil
	case int16:
		return Int16, le.AppendUint16(nil, uint16(v)), nil
	case uint32:
		return Uint32, le.AppendUint32(nil, v), nil
	case int32:
		return Int32, le.AppendUint32(nil, uint32(v)), nil
	case uint64:
		return Uint64, le.AppendUint64(nil, v), nil
	case int64:
		return Int64, le.AppendUint64(nil, uint64(v)), nil
	case float32:
		return Float32, le.AppendUint32(nil, math.Float32bits(v)), nil
	case float64:
		return Float64, le.AppendUint64(nil, math.Float64bits(v)), nil
	case bool:
		if v {
			return Bool, []byte{1}, nil
		}
		return Bool, []byte{0}, nil
	case string:
		return String, appendString(nil, v), nil
	case []uint8:
		return array(Uint8, v, depth)
	case []int8:
		return array(Int8, v, depth)
	case []uint16:
		return array(Uint16, v, depth)
	case []int16:
		return array(Int16, v, depth)
	case []uint32:
		return array(Uint32, v, depth)
	case []int32:
		return array(Int32, v, depth)
	case []uint64:
		return array(Uint64, v, depth)
	case []int64:
		return array(Int64, v, depth)
	case []float32:
		return array(Float32, v, depth)
	case []float64:
		return array(Float64, v, depth)
	case []bool:
		return array(Bool, v, depth)
	case []string:
		return array(String, v, depth)
	case []any:
		return array(Array, v, depth)
	}
	return 0, nil, fmt.Errorf("a value of Go type %T has no type in the format", value)
}

// array encodes a slice whose elements have the given type.
func array[T any](elem ValueType, values []T, depth int) (ValueType, []byte, error) {
	if depth >= maxArrayDepth {
		return 0, nil, fmt.Errorf("arrays are nested more than %d deep", maxArrayDepth)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(elem))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(values)))
	for i, v := range values {
		t, encoded, err := encode(v, depth+1)
		if err != nil {
			return 0, nil, err
		}
		if t != elem {
			return 0, nil, fmt.Errorf("element %d of an array of arrays is %v", i, t)
		}
		b = append(b, encoded...)
	}
	return Array, b, nil
}
