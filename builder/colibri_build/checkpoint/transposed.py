"""A stored stack of matrices [experts, inputs, outputs], as the matrices [outputs, inputs] that we compute with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colibri_build.artifacts import F32
from colibri_build.checkpoint.stored import Index, StoredTensor


@dataclass(frozen=True)
class TransposedTensor(StoredTensor):
    """`stored` with its last two axes exchanged."""

    stored: StoredTensor

    @classmethod
    def of(cls, stored: StoredTensor) -> StoredTensor:
        """The view of a tensor [experts, inputs, outputs]; of such a view, what it is a view of."""
        if isinstance(stored, cls):
            return stored.stored
        experts, inputs, outputs = stored.shape
        return cls(stored.file, stored.name, stored.dtype, (experts, outputs, inputs), stored)

    @property
    def supported(self) -> bool:
        """As the stored tensor says."""
        return self.stored.supported

    @property
    def by_rows(self) -> bool:
        """A row of ours is a column of the file: read piece by piece, every page would be visited for every piece."""
        return False

    def load(self, index: Index = ()) -> F32:
        """All experts, one, or rows of one."""
        picked = (index[0], slice(None), *index[1:]) if index else ()
        return np.ascontiguousarray(np.swapaxes(self.stored.load(picked), -1, -2))

    def non_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """As the stored tensor says, by our axes."""
        found = self.stored.non_finite()
        if found is None:
            return None
        count, (expert, column, row) = found
        return count, (expert, row, column)
