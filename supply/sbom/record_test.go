package sbom

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// program returns an executable file for Linux whose record names a module many times.
func program(modules int) []byte {
	record := []byte("0w\xaf\x0c\x92t\x08\x02A\xe1\xc1\x07\xe6\xd6\x18\xe6path\tx\nmod\tx\t(devel)\n")
	record = append(record, bytes.Repeat([]byte("dep\tx\tv\n"), modules)...)
	record = append(record, "\n\xf92C1\x86\x18 r\x00\x82B\x10A\x16\xd8\xf2"...)
	data := append([]byte("\xff Go buildinf:\x08\x02"), make([]byte, 16)...)
	data = append(append(data, 6), "go1.26"...)
	data = append(binary.AppendUvarint(data, uint64(len(record))), record...)

	const at, offset = 0x10000, 0x1000
	file := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	for _, part := range []any{uint16(2), uint16(62), uint32(1), uint64(at), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0), // the header of the file
		uint32(1), uint32(6), uint64(offset), uint64(at), uint64(at), uint64(len(data)), uint64(len(data)),
		uint64(0x1000)} { // the segment with the data
		file, _ = binary.Append(file, binary.LittleEndian, part)
	}
	return append(append(file, make([]byte, offset-len(file))...), data...)
}

// A record takes as much memory as one can that was not made to take more.
func TestLargeRecord(t *testing.T) {
	small := program(9_999)
	p, err := ReadProgram("bin/opm", bytes.NewReader(small), int64(len(small)), "v1")
	if err != nil || len(p.Modules) != 9_999 {
		t.Fatalf("%v, %v", p, err)
	}
	large := program(4 << 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err = ReadProgram("bin/opm", bytes.NewReader(large), int64(len(large)), "v1")
	runtime.ReadMemStats(&after)
	if err != nil || p.Modules != nil || p.Digest == "" {
		t.Errorf("%v, %v", p, err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
		t.Errorf("it took %d bytes", taken)
	}
}
