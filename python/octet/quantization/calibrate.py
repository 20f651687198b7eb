"""What gives samples, and the ways to find ranges."""
import abc
from typing import Any, Dict, Optional

from .quant_utils import _Named


class CalibrationMethod(_Named):
    """Accepted; Octet measures which way to choose ranges suits the model."""
    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Gives the samples: get_next() returns a dictionary of arrays by the names of inputs, of one sample or more along axis 0; None after the last."""

    @classmethod
    def __subclasshook__(cls, subclass):
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

    @abc.abstractmethod
    def get_next(self) -> Optional[Dict[str, Any]]:
        """The next samples."""
        raise NotImplementedError

    def __iter__(self) -> "CalibrationDataReader":
        return self

    def __next__(self) -> Dict[str, Any]:
        one = self.get_next()
        if one is None:
            raise StopIteration
        return one

    def __len__(self) -> int:
        raise NotImplementedError

    def set_range(self, start_index: int, end_index: int) -> None:
        """For readers that can give a part; Octet needs none."""
        raise NotImplementedError
