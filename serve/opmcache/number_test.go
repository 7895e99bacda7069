package opmcache

import (
	"bytes"
	"encoding/gob"
	"testing"
)

func TestNumbersAsOPMReadsThem(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1.0,"b":[10,-0.50,1e3]}`:   `{"a":1,"b":[10,-0.5,1000]}`,
		`9007199254740993`:               `9007199254740992`,
		`12345678901234567890`:           `12345678901234567000`,
		`1E21`:                           `1e+21`,
		`0.0000001`:                      `1e-7`,
		`-0`:                             `-0`,
		`"1.0 \" 2.0 \\"`:                `"1.0 \" 2.0 \\"`,
		`{"1.0":"\\","x":true,"y":2.50}`: `{"1.0":"\\","x":true,"y":2.5}`,
	} {
		got, err := appendNumbers(nil, []byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`1e400`, `"open`, `"open\`} {
		if got, err := appendNumbers(nil, []byte(in)); err == nil {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// TestCountsAreReadByTheLibrary decodes with the standard library what is encoded without it.
func TestCountsAreReadByTheLibrary(t *testing.T) {
	type index struct {
		Level                                 uint8
		NumKeys, NumBuckets, SplitBucketIndex uint32
		FreeOverflowBuckets                   []int64
	}
	for _, n := range []int{0, 1, 127, 128, 70_000, 3_000_000} {
		var got index
		size := sizeFor(n)
		if err := gob.NewDecoder(bytes.NewReader(size.meta(n))).Decode(&got); err != nil || int(got.NumKeys) != n ||
			int(got.NumBuckets) != size.buckets || int(got.Level) != size.level ||
			int(got.SplitBucketIndex) != size.split {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
		var segment struct {
			Full                                                 bool
			PutRecords, DeleteRecords, DeletedKeys, DeletedBytes uint32
		}
		if err := gob.NewDecoder(bytes.NewReader(segmentMeta(n))).Decode(&segment); err != nil ||
			int(segment.PutRecords) != n || segment.Full {
			t.Errorf("%d: %+v, %v", n, segment, err)
		}
	}
	var db struct{ HashSeed uint32 }
	if err := gob.NewDecoder(bytes.NewReader(databaseMeta(seed))).Decode(&db); err != nil || db.HashSeed != seed {
		t.Errorf("%+v, %v", db, err)
	}
}
