"""The enumerations."""
import enum


class _Named(enum.Enum):
    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_string(cls, name: str) -> "_Named":
        """The value of that name."""
        try:
            return cls[name]
        except KeyError:
            raise ValueError(f"{name!r} is none of {', '.join(cls.__members__)}") from None


class QuantType(_Named):
    """Types of quantized values."""
    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6


class QuantFormat(_Named):
    """How quantization is written."""
    QOperator = 0
    QDQ = 1


class QuantizationMode(_Named):
    """Which operators are written."""
    IntegerOps = 0
    QLinearOps = 1
