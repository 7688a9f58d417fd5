"""The Reconciliation Service API 0.2: tables are matched with the catalogue, and extended from it (decision 0024)."""

from fastapi import APIRouter

from localidades_api.router.by_key import add_slashless_twins
from localidades_api.router.reconcile import pages, service, suggest

router = APIRouter()
for part in (service, suggest, pages):
    add_slashless_twins(part.router)
    router.include_router(part.router)
