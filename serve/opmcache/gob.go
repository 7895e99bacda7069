package opmcache

import "math/bits"

// The counts of a pogreb database are Go structs in gob encoding: the description of a type, then a value. The standard
// library's encoder numbers types in the order in which a program first uses them, so its bytes do not depend on the
// value alone. These descriptions are those of a program without other types.
const (
	databaseMetaType = "\x20\x7f\x03\x01\x01\x06dbMeta\x01\xff\x80\x00\x01\x01\x01\x08HashSeed\x01\x06\x00\x00\x00"
	indexMetaType    = "\x6a\xff\x81\x03\x01\x01\x09indexMeta\x01\xff\x82\x00\x01\x05\x01\x05Level\x01\x06\x00\x01\x07NumKeys\x01\x06\x00" +
		"\x01\x0aNumBuckets\x01\x06\x00\x01\x10SplitBucketIndex\x01\x06\x00\x01\x13FreeOverflowBuckets\x01\xff\x84\x00\x00\x00" +
		"\x15\xff\x83\x02\x01\x01\x07[]int64\x01\xff\x84\x00\x01\x04\x00\x00"
	segmentMetaType = "\x64\xff\x85\x03\x01\x01\x0bsegmentMeta\x01\xff\x86\x00\x01\x05\x01\x04Full\x01\x02\x00\x01\x0aPutRecords\x01\x06\x00" +
		"\x01\x0dDeleteRecords\x01\x06\x00\x01\x0bDeletedKeys\x01\x06\x00\x01\x0cDeletedBytes\x01\x06\x00\x00\x00"
)

func databaseMeta(seed uint32) []byte { return gobStruct(databaseMetaType, 64, int(seed)) }

func segmentMeta(records int) []byte { return gobStruct(segmentMetaType, 67, 0, records) }

func (t tableSize) meta(keys int) []byte {
	return gobStruct(indexMetaType, 65, t.level, keys, t.buckets, t.split)
}

// gobStruct returns a description and a value of the type with that number, whose first fields are unsigned numbers.
func gobStruct(description string, typ int, fields ...int) []byte {
	value := gobUint(nil, uint64(typ)<<1) // type numbers are signed
	last := -1
	for i, f := range fields {
		if f != 0 { // zeros are omitted
			value = gobUint(gobUint(value, uint64(i-last)), uint64(f))
			last = i
		}
	}
	value = append(value, 0)
	return append(gobUint([]byte(description), uint64(len(value))), value...)
}

// gobUint appends a number: a small one as a byte, others as the negated byte count followed by the bytes.
func gobUint(dst []byte, n uint64) []byte {
	if n < 128 {
		return append(dst, byte(n))
	}
	size := (bits.Len64(n) + 7) / 8
	dst = append(dst, byte(-size))
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst
}
