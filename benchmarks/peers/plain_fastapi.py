"""FastAPI with SQLAlchemy as both tutorials write it: COUNT, LIMIT and OFFSET, a response model."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from pydantic import BaseModel, ConfigDict
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

PAGE_SIZE = 50

engine = create_async_engine("postgresql+asyncpg://")  # PGHOST and similar variables give the rest
new_session = async_sessionmaker(engine, expire_on_commit=False)
app = FastAPI()


class Base(DeclarativeBase):
    """The declarative base."""


class Locality(Base):
    """A locality in the table."""

    __tablename__ = "localities"

    id: Mapped[int] = mapped_column(primary_key=True)
    municipio_id: Mapped[int]
    clave: Mapped[str]
    nombre: Mapped[str]


class LocalityOut(BaseModel):
    """A locality on the wire."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    municipio_id: int
    clave: str
    nombre: str


class Page(BaseModel):
    """The envelope."""

    quantity: int
    total_pages: int
    results: list[LocalityOut]


async def get_session() -> AsyncIterator[AsyncSession]:
    """Lend a session to a request."""
    async with new_session() as session:
        yield session


@app.get("/api/census/localidades/", response_model=Page)
async def list_localities(
    session: Annotated[AsyncSession, Depends(get_session)], page: Annotated[int, Query(ge=1)] = 1
) -> dict[str, object]:
    """List the localities by clave, then id."""
    quantity = await session.scalar(select(func.count()).select_from(Locality)) or 0
    rows = await session.scalars(
        select(Locality).order_by(Locality.clave, Locality.id).limit(PAGE_SIZE).offset((page - 1) * PAGE_SIZE)
    )
    return {"quantity": quantity, "total_pages": -(-quantity // PAGE_SIZE), "results": rows.all()}
