"""The Reconciliation Service API 0.2: matches tables with the catalogue, and extends them (decision 0024)."""

from fastapi import APIRouter

from localidades_api.router.reconcile import pages, service, suggest
from localidades_api.router.redirects import add_slashless_twins

router = APIRouter()
for part in (service, suggest, pages):
    add_slashless_twins(part.router)
    router.include_router(part.router)
