"""Element types of scalars, tiles and tensors (spec language 2.1)."""

from __future__ import annotations

from typing import ClassVar, Literal

Category = Literal["bool", "int", "uint", "float", "task"]


class DataType:
    """One element type; compare with ``==``, look up with :meth:`from_string` or :meth:`from_code`.

    ``code`` is the number that tile and tensor descriptors carry; ``storage`` is the NumPy name of the word that holds
    one element on chip (16-bit floats live as ``uint16`` words, 4-bit values as one byte).
    """

    _by_name: ClassVar[dict[str, DataType]] = {}
    _by_code: ClassVar[dict[int, DataType]] = {}

    __slots__ = ("_bits", "_category", "_code", "_constant", "_ctype", "_name", "_storage")

    def __init__(self, code: int, constant: str, name: str, bits: int, category: Category, storage: str, ctype: str):
        self._code, self._constant, self._name, self._bits = code, constant, name, bits
        self._category, self._storage, self._ctype = category, storage, ctype
        self._by_name[name] = self._by_code[code] = self

    @classmethod
    def from_string(cls, name: str) -> DataType:
        """The type printed as ``name``; ``ValueError`` lists the known ones."""
        try:
            return cls._by_name[name]
        except KeyError:
            raise ValueError(f"unknown dtype {name!r}; known: {', '.join(cls._by_name)}") from None

    @classmethod
    def from_code(cls, code: int) -> DataType:
        """The type with descriptor code ``code``."""
        return cls._by_code[code]

    @property
    def constant(self) -> str:
        """Name under ``pl.``, e.g. ``BF16``."""
        return self._constant

    @property
    def category(self) -> Category:
        return self._category

    @property
    def storage(self) -> str:
        return self._storage

    def get_bit(self) -> int:
        """Width of one element in bits."""
        return self._bits

    def get_byte(self) -> int:
        """Width of one element in bytes, rounded up."""
        return (self._bits + 7) // 8

    def to_string(self) -> str:
        return self._name

    def to_c_type_string(self) -> str:
        return self._ctype

    def is_float(self) -> bool:
        return self._category == "float"

    def is_int(self) -> bool:
        return self._category in ("int", "uint")

    def is_signed_int(self) -> bool:
        return self._category == "int"

    def is_unsigned_int(self) -> bool:
        return self._category == "uint"

    def code(self) -> int:
        return self._code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and other._code == self._code

    def __hash__(self) -> int:
        return hash(("DataType", self._code))

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (DataType.from_string, (self._name,))


BOOL = DataType(0, "BOOL", "bool", 1, "bool", "uint8", "bool")
INT4 = DataType(1, "INT4", "int4", 4, "int", "int8", "int4_t")
INT8 = DataType(2, "INT8", "int8", 8, "int", "int8", "int8_t")
INT16 = DataType(3, "INT16", "int16", 16, "int", "int16", "int16_t")
INT32 = DataType(4, "INT32", "int32", 32, "int", "int32", "int32_t")
INT64 = DataType(5, "INT64", "int64", 64, "int", "int64", "int64_t")
INDEX = DataType(6, "INDEX", "index", 64, "int", "int64", "int64_t")
UINT4 = DataType(7, "UINT4", "uint4", 4, "uint", "uint8", "uint4_t")
UINT8 = DataType(8, "UINT8", "uint8", 8, "uint", "uint8", "uint8_t")
UINT16 = DataType(9, "UINT16", "uint16", 16, "uint", "uint16", "uint16_t")
UINT32 = DataType(10, "UINT32", "uint32", 32, "uint", "uint32", "uint32_t")
UINT64 = DataType(11, "UINT64", "uint64", 64, "uint", "uint64", "uint64_t")
FP4 = DataType(12, "FP4", "fp4", 4, "float", "uint8", "float4_e2m1x2_t")
FP8E4M3FN = DataType(13, "FP8E4M3FN", "fp8e4m3fn", 8, "float", "uint8", "float8_e4m3_t")
FP8E5M2 = DataType(14, "FP8E5M2", "fp8e5m2", 8, "float", "uint8", "float8_e5m2_t")
FP8E8M0 = DataType(15, "FP8E8M0", "fp8e8m0", 8, "float", "uint8", "float8_e8m0_t")
FP16 = DataType(16, "FP16", "fp16", 16, "float", "uint16", "half")
BF16 = DataType(17, "BF16", "bfloat16", 16, "float", "uint16", "bfloat16_t")
FP32 = DataType(18, "FP32", "fp32", 32, "float", "float32", "float")
HF4 = DataType(19, "HF4", "hf4", 4, "float", "uint8", "hifloat4_t")
HF8 = DataType(20, "HF8", "hf8", 8, "float", "uint8", "hifloat8_t")
TASK_ID = DataType(21, "TASK_ID", "task_id", 64, "task", "int64", "uint64_t")

ALL_DTYPES: tuple[DataType, ...] = tuple(DataType._by_code[k] for k in sorted(DataType._by_code))
BY_CONSTANT: dict[str, DataType] = {d.constant: d for d in ALL_DTYPES}
