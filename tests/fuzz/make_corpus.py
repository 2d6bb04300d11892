#!/usr/bin/env python3
"""Writes the seed corpora of the fuzz targets next to this script: corpus/TARGET/NAME, small files, valid and invalid."""
import gzip
import json
import os
import struct
import zlib

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(target, name, data):
    os.makedirs(os.path.join(here, target), exist_ok=True)
    with open(os.path.join(here, target, name), "wb") as file:
        file.write(data)


def npy(descr, shape, data, version=1, fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


write("npy", "f4", npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))))
write("npy", "big_endian_fortran", npy(">f8", "(2, 2)", struct.pack(">4d", *range(4)), 2, True))
write("npy", "i8_version_3", npy("<i8", "(2,)", struct.pack("<2q", 1, 2**40), 3))
write("npy", "bool_scalar", npy("|b1", "()", b"\1"))
write("npy", "shape_lies", npy("<f4", "(99999999999, 99999999999)", b"abcd"))
write("npy", "object", npy("|O", "(1,)", b"\x80\x04N."))
write("npy", "cut", npy("<f2", "(4,)", b"abc"))


def idx(code, extents, data):
    return bytes([0, 0, code, len(extents)]) + b"".join(struct.pack(">I", e) for e in extents) + data


write("idx", "u8", idx(0x08, [2, 2, 2], bytes(range(8))))
write("idx", "s16", idx(0x0B, [3], struct.pack(">3h", 1, -2, 3)))
write("idx", "f64", idx(0x0E, [1], struct.pack(">d", 1.5)))
write("idx", "compressed", gzip.compress(idx(0x08, [4], b"abcd"), mtime=0))
write("idx", "bomb", gzip.compress(idx(0x08, [4], bytes(1000000)), mtime=0))
write("idx", "size_lies", idx(0x0D, [0xFFFFFFFF, 0xFFFFFF], b"abcd"))
write("idx", "cut_compressed", gzip.compress(idx(0x08, [4], b"abcd"), mtime=0)[:-6])


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


write("safetensors", "two", safetensors({"__metadata__": {"epoch": "3"}, "weight": tensor("F32", [2, 1], 0, 8),
                                         "labels": tensor("I64", [1], 8, 16)}, bytes(16)))
write("safetensors", "fp8", safetensors({"a": tensor("F8_E4M3", [3], 0, 3), "b": tensor("F8_E5M2", [1], 3, 4)}, b"abcd"))
write("safetensors", "empty", safetensors({}))
write("safetensors", "overlap", safetensors({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, b"abc"))
write("safetensors", "nested", safetensors(b'{"a":' + b"[" * 200))
write("safetensors", "huge_header", struct.pack("<Q", 2**63) + b"{}")
write("safetensors", "shape_lies", safetensors({"a": tensor("F64", [2**40, 2**40], 0, 4)}, b"abcd"))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color, rows, extra=b"", interlaced=0):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))
            + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


write("png", "gray", png(2, 2, 8, 0, b"\0\1\2\1\3\4"))
write("png", "color_alpha_16", png(1, 1, 16, 6, b"\0" + bytes(range(8))))
write("png", "palette_transparent", png(4, 1, 2, 3, b"\0\x1b", chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\0\x80")))
write("png", "interlaced", png(2, 2, 8, 0, b"\0\1\0\2\0\3\4", interlaced=1))
write("png", "size_lies", png(16384, 16384, 8, 2, b"\0"))
write("png", "cut", png(2, 2, 8, 0, b"\0\1\2\0\3\4")[:-20])


def bmp(width, height, bits, palette, rows, compression=0):
    at = 54 + len(palette)
    return (b"BM" + struct.pack("<IIIIiiHHIIiiII", at + len(rows), 0, at, 40, width, height, 1, bits, compression,
                                len(rows), 0, 0, len(palette) // 4 if compression == 0 else 0, 0) + palette + rows)


write("bmp", "color", bmp(1, 2, 24, b"", b"\1\2\3\0\4\5\6\0"))
write("bmp", "top_down_32", bmp(1, -1, 32, b"", b"\1\2\3\4"))
write("bmp", "masks_32", bmp(1, 1, 32, struct.pack("<III", 0xFF0000, 0xFF00, 0xFF), b"\1\2\3\4", 3))
for bits in (1, 4, 8):
    write("bmp", f"palette_{bits}", bmp(3, 1, bits, bytes(range(8)), b"\0\1\0\0"))
write("bmp", "size_lies", bmp(16384, 16384, 24, b"", b"\1\2\3\0"))

write("json_lines", "records", b'{"epoch": 1, "loss": 0.25, "text": "a\\u00e9\\n"}\n\n[true, null, -1e5]\n')
write("json_lines", "cut", b'{"epoch": 1}\n{"epoch":')
write("json_lines", "nested", b"[" * 300)
write("json_lines", "not_utf8", b'"\xff"\n1e999\n')


def cubin_entry(key, image, version=1):
    texts = b"".join(struct.pack("<Q", len(t)) + t for t in (key, image, b"_Z4name", b"NVRTC 13.0", b""))
    body = b"COSMATIK" + struct.pack("<I", version) + texts + struct.pack("<4id", 96, 0, 16384, 0, 0.184)
    return body + struct.pack("<I", zlib.crc32(body))


write("cubin_entry", "good", cubin_entry(b"option 9\n--a", b"\x7fELF"))
write("cubin_entry", "empty", cubin_entry(b"", b""))
write("cubin_entry", "other_version", cubin_entry(b"key", b"\x7fELF", 2))
write("cubin_entry", "cut", cubin_entry(b"key", bytes(100))[:-60])
write("cubin_entry", "length_lies", cubin_entry(b"key", b"\x7fELF").replace(b"\3" + bytes(7), b"\xff" * 8))

TUNING = (b'gemm a=bf16/k8 b=bf16/k8 c=none d=bf16/8 sum=f32 epilogue=light+1 m=512 n=64 k=16 batch=1 gpu="a GPU, 9.0" kernel=multistage '
          b'policy=block_m=64,stages=3,multiply=mma splits=2 measured=512x64x16x1 seconds=5e-6 planned=7e-6 driver="d" version="v" time=2026-01-31T23:59:59Z\n')
write("tuning", "two", b"# head\n" + TUNING + TUNING.replace(b"m=512", b"m=64"))
write("tuning", "only", TUNING.replace(b"batch=1", b"batch=7 only=double_buffered"))
write("tuning", "quote", TUNING.replace(b'version="v"', b'version="v'))
write("tuning", "twice", TUNING.replace(b"splits=2", b"splits=2 splits=3"))
