"""The Reconciliation Service API 0.2: matches and extends tables. OpenRefine and the clients on PyPI speak no other.

Its specification describes these resources, so the service's OpenAPI document does not. `match` is true only where
nobody needs to look (docs/decisions/certainty.md).
"""

from localidades_api.api.extension import Extension
from localidades_api.extensions.reconcile.entities import RECONCILE, describe_preview_problem
from localidades_api.extensions.reconcile.router import router

EXTENSION = Extension(router, RECONCILE, problem_pages={f"{RECONCILE}preview/": describe_preview_problem})
