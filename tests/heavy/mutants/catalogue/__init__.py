"""Deliberately broken variants of the library: each must fail one of its tests.

Nearly every one is a mistake that another system has shipped, with the number of the
trap or the project in ``why``.  A module here has the mutants of one package.
"""

from __future__ import annotations

from typing import Final

from tests.heavy.mutants.catalogue.build import BUILD
from tests.heavy.mutants.catalogue.catalyst import CATALYST
from tests.heavy.mutants.catalogue.delta import DELTA
from tests.heavy.mutants.catalogue.exclusive import EXCLUSIVE
from tests.heavy.mutants.catalogue.expressions import EXPRESSIONS
from tests.heavy.mutants.catalogue.foreign import FOREIGN
from tests.heavy.mutants.catalogue.iceberg import ICEBERG
from tests.heavy.mutants.catalogue.indexes import INDEXES
from tests.heavy.mutants.catalogue.planner import PLANNER
from tests.heavy.mutants.catalogue.pruning import PRUNING
from tests.heavy.mutants.catalogue.segments import SEGMENTS
from tests.heavy.mutants.catalogue.stages import STAGES
from tests.heavy.mutants.catalogue.storage import STORAGE
from tests.heavy.mutants.catalogue.table import TABLE

MUTANTS: Final = (
    *EXPRESSIONS,
    *STORAGE,
    *SEGMENTS,
    *EXCLUSIVE,
    *DELTA,
    *ICEBERG,
    *FOREIGN,
    *INDEXES,
    *TABLE,
    *BUILD,
    *PLANNER,
    *STAGES,
    *CATALYST,
    *PRUNING,
)
BY_NAME: Final = {mutant.name: mutant for mutant in MUTANTS}
