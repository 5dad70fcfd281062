package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// decode reads JSON into a struct and takes only what the struct has: an unknown
// field, a field given twice, null, or anything behind the value is an error
// that names the place.
func decode(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := check(d, "", reflect.TypeOf(to).Elem()); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the closing brace")
	}
	err := json.Unmarshal(data, to)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: a %s where %s is wanted", wrong.Field, wrong.Value, kind(wrong.Type))
	}
	return err
}

// check reads one value and compares its fields with those of a type. Values
// of a wrong type are left to Unmarshal.
func check(d *json.Decoder, path string, t reflect.Type) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("%sit is not whole JSON: %w", where(path), err)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case nil:
		return fmt.Errorf("%snull: leave the field out instead", where(path))
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for i := 0; d.More(); i++ {
			if err := check(d, fmt.Sprintf("%s[%d]", path, i), elem); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return fmt.Errorf("%sit is not whole JSON: %w", where(path), err)
			}
			name := token.(string) // the decoder takes nothing else here
			inner := strings.TrimPrefix(path+"."+name, ".")
			if seen[name] {
				return fmt.Errorf("%s: given twice", inner)
			}
			seen[name] = true
			var field reflect.Type
			if t != nil && t.Kind() == reflect.Map {
				field = t.Elem()
			} else if t != nil && t.Kind() == reflect.Struct {
				known := fields(t)
				if field = known[name]; field == nil {
					return fmt.Errorf("%s: there is no such field; there are %s", inner, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
				}
			}
			if err := check(d, inner, field); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	if err != nil {
		return fmt.Errorf("%sit is not whole JSON: %w", where(path), err)
	}
	return nil
}

func where(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// fields are the names that a struct has in JSON, and their types.
func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = t.Field(i).Type
	}
	return out
}

func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Float64:
		return "a number"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
