"""HTTP/1.1 on a connection: uvicorn's protocol, which writes an answer that is ready at once."""

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from localidades_api.server.protocol import HttpProtocol

if TYPE_CHECKING:
    from starlette.types import Scope
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from localidades_api.middleware import Middleware

_SHUTDOWN_GRACE = 1.0  # seconds that a connection has for a request once the process is told to stop
_ENDING = "localidades.ending"  # in the lifespan's state, which all connections of the process share


class CachedResponseProtocol(HttpProtocol):
    """Writes what is at hand in front of routing, in the place where uvicorn starts a task for the application.

    uvicorn checks and copies each header of each answer and starts a task for it; for a page that is held, that was
    more than half of all work (decision 0007).
    """

    def shutdown(self) -> None:
        """Close after the next answer, which says so, or when none is asked for within a moment.

        A connection that looks idle may have a request on its way, which would be lost if it were closed at once.
        """
        self.app_state[_ENDING] = True
        self.loop.call_later(_SHUTDOWN_GRACE, super().shutdown)

    def _start_asgi_task(self, cycle: "RequestResponseCycle", app: "ASGI3Application") -> None:
        """Answer, or have the application do so."""
        if _ENDING in self.app_state:
            cycle.keep_alive = False
        front: Middleware = self.app_state["front"]
        # With a pipeline waiting, answers would start each other, each a few frames deeper in the stack.
        idle = not self.pipeline and not self.flow.write_paused and not self.transport.is_closing() and not self._last
        if idle and (answer := front.ready(cast("Scope", cycle.scope))):
            defaults = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
            end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
            self.transport.write(b"".join((STATUS_LINE[answer.status], *defaults, answer.headers, end, answer.body)))
            cycle.response_started = cycle.response_complete = True
            cycle.message_event.set()
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()
        else:
            super()._start_asgi_task(cycle, app)
