"""The Reconciliation Service API 0.2: matches tables with the catalogue, and extends them (decision 0024)."""

from fastapi import APIRouter

from localidades_api.router.by_key import add_slashless_twins
from localidades_api.router.reconcile import pages, service, suggest

router = APIRouter()
for part in (service, suggest, pages):
    add_slashless_twins(part.router)
    router.include_router(part.router)
