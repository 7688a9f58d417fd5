# syntax=docker/dockerfile:1
FROM python:3.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# Dependencies change less often than the code, so they come first and stay cached.
COPY requirements/build.txt requirements/serve.txt requirements/
RUN python -m venv /build && /build/bin/pip install --require-hashes -r requirements/build.txt \
    && python -m venv /opt/venv && /opt/venv/bin/pip install --require-hashes -r requirements/serve.txt
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY docs docs
COPY src src
RUN /build/bin/python -m hatchling build --target wheel --directory /dist \
    && /opt/venv/bin/pip install --no-deps /dist/*.whl

FROM python:3.13-slim-bookworm
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent localidades
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY alembic.ini ./
COPY migrations migrations
USER 10001
EXPOSE 8000
# The process responds, as with Kubernetes' liveness: an orchestrator may restart an unhealthy container, which helps
# against no failure of the database. The service listens on a second port for probes if one is set.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-c", "\
import http.client, os; \
probe = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('LOCALIDADES_MANAGEMENT_PORT') or 8000), timeout=4); \
probe.request('GET', '/livez'); \
raise SystemExit(probe.getresponse().status != 204)"]
CMD ["localidades-api", "serve", "--host", "0.0.0.0"]
