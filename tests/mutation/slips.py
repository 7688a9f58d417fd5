"""The slips that can be made in a Python file: small changes such as `<` for `<=`, found in its syntax tree."""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
_EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SQL = re.compile(r"\b(?:SELECT|WHERE|FROM|ORDER BY|LIMIT|VALUES|UPDATE|DELETE)\b")
_BOUND = r" [+-] 1\b"
_SQL_SLIPS = (
    (r" <= ", " < "),
    (r" < ", " <= "),
    (r" >= ", " > "),
    (r" > ", " >= "),
    (r" = ", " <> "),
    (_BOUND, ""),
    (r"\bAND\b", "OR"),
    (r"\bNOT ", ""),
    (r"\bDESC\b", "ASC"),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bDISTINCT ", ""),
)
# Their texts and levels are for people, and tests of them would repeat them.
_LOG = re.compile(r"^(?:_log|logging|logger)\.")
_UNCHECKED = re.compile(r"^(?:_log\.|logging\.|logger\.|cast$|TypeVar$)")
_UNTESTED = {"__repr__"}
# Tests don't wait a second more, and nobody relies on a figure that is invented.
_FIGURES = re.compile(r"TIMEOUT|INTERVAL|PAUSE|PATIENCE|DELAY|SECONDS|WAIT")
_INVENTED = "importer/demo/"
_CACHES = re.compile(
    r"^(?:cache|lru_cache|dataclass|overload|final|cached_property|property|classmethod|staticmethod)\b"
)


@dataclass(frozen=True)
class Edit:
    """A replacement of some bytes of a file."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Slip:
    """A change of a file that tests should notice."""

    path: str
    line: int
    before: str  # the lines, without line breaks
    after: str
    edit: Edit
    lines: tuple[int, ...]  # of the statement, the changed one first; empty if it runs when the module is imported
    tests: tuple[str, ...] = ()  # test modules, if coverage can't tell them

    @property
    def identity(self) -> tuple[str, str, str]:
        """What marks it in `equivalent.toml`, wherever it moves in its file."""
        return self.path, self.before, self.after

    def applied(self, content: bytes) -> bytes:
        """Return the file's content with the slip."""
        return content[: self.edit.start] + self.edit.text.encode() + content[self.edit.end :]


class Source:
    """A file's bytes, by the positions of its syntax tree."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tree = ast.parse(content)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer(b"\n", self.content))]

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset of a node's beginning."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset of a node's end."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.content[start:end].decode()

    def replaced(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        """Return the edit that replaces a node."""
        return Edit(self.start(node), self.end(node), text)

    def between(self, left: ast.expr, right: ast.expr, token: str, text: str) -> Iterator[Edit]:
        """Yield the edit that replaces an operator between two operands."""
        start = self.end(left)
        if found := re.search(token, self.text(start, self.start(right))):
            yield Edit(start + found.start(), start + found.end(), text)

    def line_of(self, offset: int) -> int:
        """Return the number of the line at an offset."""
        return bisect_right(self._starts, offset)

    def around(self, edit: Edit, *, changed: bool) -> str:
        """Return the lines of an edit as one, before or after it."""
        first = self._starts[self.line_of(edit.start) - 1]
        middle = edit.text if changed else self.text(edit.start, edit.end)
        rest, _, _ = self.content[edit.end :].partition(b"\n")
        return " ".join((self.text(first, edit.start) + middle + rest.decode()).split())


def slips_of(path: str, content: bytes) -> Iterator[Slip]:
    """Yield every slip of a file, in the order of its lines."""
    source = Source(content)
    found = [
        Slip(path, line, before, after, edit, lines)
        for edit, lines in _edits_of_body(source, source.tree.body, in_function=False)
        if lines or _INVENTED not in path
        if (line := source.line_of(edit.start))
        and (before := source.around(edit, changed=False)) != (after := source.around(edit, changed=True))
    ]
    return iter(sorted(set(found), key=lambda slip: (slip.edit.start, slip.after)))


def is_python(content: bytes) -> bool:
    """Whether a changed file can still be parsed."""
    try:
        ast.parse(content)
    except SyntaxError:
        return False
    return True


def function_lines(content: bytes) -> set[int]:
    """Return the lines of statements in functions, which don't run when the module is imported."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return found


Found = Iterator[tuple[Edit, tuple[int, ...]]]


def _edits_of_body(source: Source, body: list[ast.stmt], *, in_function: bool) -> Found:
    for statement in body:
        if _is_skipped(statement):
            continue
        lines = tuple(_lines_of(statement)) if in_function else ()
        if in_function or isinstance(statement, ast.AugAssign | ast.Expr):
            yield from ((edit, lines) for edit in _removals(source, statement))
        for expression in _expressions_of(statement):
            for edit in _edits_of_expression(source, expression, statement):
                first = source.line_of(edit.start)
                yield edit, ((first, *lines) if in_function else ())
        is_function = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in _bodies_of(statement):
            yield from _edits_of_body(source, part, in_function=in_function or is_function)


def _is_skipped(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Assert():
            skipped = True
        case ast.Expr(ast.Call(called)):
            skipped = _LOG.match(ast.unparse(called)) is not None
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            skipped = name in {"__all__", "__slots__"} or _FIGURES.search(name) is not None
        case ast.If(test):
            skipped = "TYPE_CHECKING" in ast.unparse(test)
        case ast.ClassDef(bases=bases):
            skipped = any(ast.unparse(base).startswith("Protocol") for base in bases)
        case ast.FunctionDef(name=name, decorator_list=decorators):
            skipped = name in _UNTESTED or any(ast.unparse(one).endswith("overload") for one in decorators)
        case _:
            skipped = False
    return skipped


def _lines_of(statement: ast.stmt) -> range:
    """Return the lines of a statement, or of its head."""
    bodies = [part[0].lineno for part in _bodies_of(statement) if part]
    end = min(bodies, default=(statement.end_lineno or statement.lineno) + 1)
    return range(statement.lineno, max(end, statement.lineno + 1))


def _bodies_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    bodies = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(statement, "handlers", [])]
    return bodies + [case.body for case in getattr(statement, "cases", [])]


def _expressions_of(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement's head, without annotations but with what `Annotated` adds to them."""
    match statement:
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            yield from (one for one in statement.decorator_list if not _CACHES.match(ast.unparse(one)))
            yield from (one for one in (*arguments.defaults, *arguments.kw_defaults) if one)
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield from _metadata(argument.annotation)
        case ast.AnnAssign(annotation=annotation, value=value):
            yield from _metadata(annotation)
            yield from filter(None, [value])
        case ast.ClassDef():
            yield from (one.value for one in statement.keywords)
        case ast.With(items) | ast.AsyncWith(items):
            yield from (item.context_expr for item in items)
        case _:
            yield from (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr))


def _metadata(annotation: ast.expr | None) -> Iterator[ast.expr]:
    for node in ast.walk(annotation) if annotation else ():
        match node:
            case ast.Subscript(ast.Name("Annotated"), ast.Tuple([_, *metadata])):
                yield from metadata


def _edits_of_expression(source: Source, expression: ast.expr, statement: ast.stmt) -> Iterator[Edit]:
    yield from _negations(source, expression, statement)
    for node in _walk(expression):
        for edits in _OPERATORS:
            yield from edits(source, node)


def _walk(expression: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and those in it, without annotations, log texts and the parts of formatted strings."""
    yield expression
    children: Iterator[ast.AST]
    match expression:
        case ast.JoinedStr():  # before Python 3.12 the positions of its parts are wrong
            children = iter(())
        case ast.Subscript(ast.Name("Annotated" | "Literal" | "Callable" | "dict" | "list" | "tuple")):
            children = _metadata(expression)
        case ast.Call(called) if _UNCHECKED.match(ast.unparse(called)):
            children = iter(())
        case _:
            children = ast.iter_child_nodes(expression)
    for child in children:
        # Keyword arguments, slices and the clauses of comprehensions have expressions in them.
        parts = [child] if isinstance(child, ast.expr) else ast.iter_child_nodes(child)
        for part in parts:
            if isinstance(part, ast.expr):
                yield from _walk(part)


def _removals(source: Source, statement: ast.stmt) -> Iterator[Edit]:
    """Remove a statement that others don't need to run."""
    match statement:
        case (
            ast.Expr(ast.Call() | ast.Await())
            | ast.Assign([ast.Attribute() | ast.Subscript()])
            | ast.AugAssign()
            | ast.Delete()
            | ast.Raise()
            | ast.Continue()
            | ast.Break()
            | ast.Return(None)
        ):
            yield source.replaced(statement, "pass")


def _negations(source: Source, expression: ast.expr, statement: ast.stmt) -> Iterator[Edit]:
    """Negate a condition, or what a function with the result `bool` returns."""
    if isinstance(expression, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
        return
    if isinstance(statement, ast.If | ast.While) and not isinstance(expression, ast.Constant):
        text = source.text(source.start(expression), source.end(expression))
        yield source.replaced(expression, f"not ({text})")


def _comparisons(source: Source, node: ast.expr) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for (left, right), operator in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            token, text = _COMPARISONS[type(operator)]
            yield from source.between(left, right, token, text)


def _logic(source: Source, node: ast.expr) -> Iterator[Edit]:
    match node:
        case ast.BoolOp(operator, values):
            token, text = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
            for left, right in pairwise(values):
                yield from source.between(left, right, rf"\b{token}\b", text)
        case ast.UnaryOp(ast.Not(), operand):
            yield Edit(source.start(node), source.start(operand), "")
        case ast.IfExp(test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield source.replaced(test, f"not ({source.text(source.start(test), source.end(test))})")
        case ast.Constant(bool(value)):
            yield source.replaced(node, str(not value))


def _arithmetic(source: Source, node: ast.expr) -> Iterator[Edit]:
    match node:
        case ast.BinOp(left, operator, right) if type(operator) in _ARITHMETIC:
            if not any(isinstance(one, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(one) for one in (left, right)):
                token, text = _ARITHMETIC[type(operator)]
                yield from source.between(left, right, re.escape(token), text)
            match operator, right:
                case ast.Add() | ast.Sub(), ast.Constant(1):
                    yield Edit(source.end(left), source.end(right), "")
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield source.replaced(node, str(value + 1))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _calls(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Drop a keyword argument, exchange two others, or `min` and `max`."""
    if not isinstance(node, ast.Call):
        return
    arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    for place, argument in enumerate(arguments):
        if isinstance(argument, ast.keyword) and argument.arg:
            if place:
                yield Edit(source.end(arguments[place - 1]), source.end(argument), "")
            else:
                following = arguments[1:2]
                yield Edit(
                    source.start(argument), source.start(following[0]) if following else source.end(argument), ""
                )
    match node.args:
        case [ast.Name() | ast.Attribute() as one, ast.Name() | ast.Attribute() as two, *_]:
            first, second = (source.text(source.start(part), source.end(part)) for part in (one, two))
            yield Edit(source.start(one), source.end(two), f"{second}, {first}")
    match node.func:
        case ast.Name(name) if name in _EXCHANGED:
            yield source.replaced(node.func, _EXCHANGED[name])


def _entries(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Drop an entry of a dictionary."""
    if not isinstance(node, ast.Dict):
        return
    for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is not None and index:
            yield Edit(source.end(node.values[index - 1]), source.end(value), "")
        elif key is not None and len(node.values) == 1:
            yield Edit(source.start(key), source.end(value), "")
        elif key is not None and (following := node.keys[1]):
            yield Edit(source.start(key), source.start(following), "")


def _statements_of_sql(source: Source, node: ast.expr) -> Iterator[Edit]:
    """Change an operator or a keyword in the text of a statement; in the braces of a formatted string, only a bound."""
    if not isinstance(node, ast.JoinedStr) and not _is_text(node):
        return
    start = source.start(node)
    text = source.text(start, source.end(node))
    if not _SQL.search(text):
        return
    for pattern, replacement in _SQL_SLIPS:
        for found in re.finditer(pattern, text):
            before = text[: found.start()]
            if pattern == _BOUND or before.count("{") == before.count("}"):
                begin = start + len(before.encode())
                yield Edit(begin, begin + len(found[0].encode()), replacement)


_OPERATORS: tuple[Callable[[Source, ast.expr], Iterator[Edit]], ...] = (
    _comparisons,
    _logic,
    _arithmetic,
    _calls,
    _entries,
    _statements_of_sql,
)
