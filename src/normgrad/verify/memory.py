"""Memory: which entry of which tensor an address is, what a load gives, and what all stores together leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sympy import Expr, Indexed, IndexedBase, S, Symbol, expand, nan, oo, sympify

from ..symbolic.normal_form import nf
from ..symbolic.notation import tensor, total
from ..symbolic.symbols import M, N, i, j
from .binding import AXES, COLUMN_TILES, PIDS, Launch, Lock, Out, T, Zeros
from .definitions import LETTERS, ONEHOT, is_target
from .places import FLOOR, LEAST, Places, least
from .tables.dtypes import FLOATS
from .values import (
    BEFORE,
    Index,
    Mask,
    NotRead,
    Number,
    Place,
    Pointer,
    Unknown,
    Wrong,
    fit,
    uncompiled,
)
from .welford import held
from .widths import Widths

SIZE = {"R": M, "C": N}
# how a store is atomic that a lock guards
LOCKED = "locked"
HERE = {"i": i, "j": j}


def entry_of(name: str | Expr, indices: list[tuple[Expr, Expr]]) -> Expr:
    """An entry of a tensor, given by name, by what its entry at row i and column j is, or itself.

    Args:  indices: (the size of an axis, the index along it)
    """
    if isinstance(name, Expr) and not isinstance(name, IndexedBase):
        return name.xreplace({LETTERS[size]: index for size, index in indices})
    held = name
    if isinstance(name, str):
        held = tensor(name, *[size for size, _ in indices])
    return held[tuple(index for _, index in indices)] if indices else held


def group_of(pid: Symbol, size: Expr) -> Expr:
    """A program's number modulo a size."""
    return expand(pid - size * FLOOR(pid, size))


def split(offset: Expr, stride: Expr) -> tuple[Expr, Expr]:
    """(how many times a stride is in an offset, what is left)."""
    index = offset if stride == 1 else offset.coeff(stride, 1)
    return index, expand(offset - index * stride)


@dataclass(frozen=True)
class Access:
    """A load or a store.

    Args:  row, column: its places; loops: the open loops; value: what is stored, in i and j
           atomic: whether it is added; line: of the source
           rounded: where what is stored lost digits in 16 bits, as "float16 (line 9)"
    """

    row: Place | None
    column: Place | None
    loops: tuple
    line: int
    value: Expr | None = None
    atomic: bool = False
    rounded: str = ""

    @property
    def places(self) -> list[Place]:
        """Those of its row and its column."""
        return [place for place in (self.row, self.column) if place is not None]


@dataclass
class Memory:
    """What a kernel reads and writes; fill: what a masked load without `other` gives; line: that is being read."""

    launch: Launch
    places: Places
    assumed: dict
    widths: Widths
    fill: Expr = nan
    line: int = 0
    loads: dict[str, list[Access]] = field(default_factory=dict)
    stores: dict[str, list[Access]] = field(default_factory=dict)
    guards: list[frozenset] = field(default_factory=list)
    filled: set[int] = field(default_factory=set)
    faults: dict[str, NotRead] = field(default_factory=dict)
    unbound: set[str] = field(default_factory=set)
    unread: list[NotRead] = field(default_factory=list)
    in_first_row: dict[str, bool] = field(default_factory=dict)
    is_read: bool = False
    # what the claim is for, in words; the lines of stores that a barrier makes visible to all threads
    told: dict[str, None] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    # what is read as the zeros that it holds before the kernel
    zeros: set[str] = field(default_factory=set)
    # {the largest of a tile, or of those up to a turn: the turn that it depends on}
    moving: dict[IndexedBase, object] = field(default_factory=dict)

    # addresses

    def entry(self, pointer: Pointer) -> tuple[T, dict[str, Place]]:
        """The tensor and the places of an address, {letter of its index: place}.

        For tensors with strides of their own. It stops an address by another tensor's stride, and one between entries.
        """
        bound = self.launch.arguments[pointer.name]
        if isinstance(bound, Lock):
            raise NotRead(f"{pointer.name}, a lock that is used otherwise")
        letters, stride = bound.letters, self.launch.stride
        has_rows, has_columns = letters[:1] in (("i",), ("p",)), "j" in letters
        no_rows = bound.stride is not None and not has_rows
        if no_rows or bound.column_stride != 1 and not has_columns:
            raise NotRead(
                f"{pointer.name}: a stride that [{', '.join(letters)}] has not"
            )
        row_stride = N if has_columns else S.One
        if bound.stride is not None:
            row_stride = stride(bound.stride)
        offset = expand(pointer.offset.e - stride(bound.start))
        row, remainder = S.Zero, offset
        if has_rows:
            row, remainder = split(offset, row_stride)
        if bound.heads is not None:  # a row is heads * token + head
            heads, to_head = map(stride, bound.heads)
            token, head = row, remainder.coeff(to_head, 1)
            row = expand(heads * token + head)
            remainder = expand(remainder - head * to_head)
            if token != FLOOR(row, heads):
                raise NotRead(f"a row whose token is {token} and whose head is {head}")
        column, remainder = split(remainder, stride(bound.column_stride))
        if remainder != 0 or column != 0 and not has_columns:
            raise NotRead(
                f"{pointer.name}: the address {offset} is not an entry "
                f"[{', '.join(letters)}] with its strides"
            )
        index = {"i": ("R", row), "p": ("P", row), "j": ("C", column)}
        try:
            group = self.launch.groups.get(pointer.name)
            places = {name: self._place(*index[name], group) for name in letters}
        except NotRead as reason:
            raise NotRead(
                f"{pointer.name}: {reason}; its address is {pointer.offset.e}, "
                f"and its row stride {row_stride}"
            ) from None
        sizes = {"i": M, "j": N}
        if group is not None:
            sizes["p"] = group[0]
        elif row in PIDS:
            sizes["p"] = self.launch.programs(PIDS.index(row))
        indices = [(index[name][1], sizes[name]) for name in letters]
        self.widths.use_address(pointer.parts, indices)
        return bound, places

    def _place(self, axis, index, group=None):
        """The place of an index; "P" is that of a row of partial sums, which is the program's own, or its group's.

        For dw in two kernels. It stops programs that write over each other's row.
        """
        if index in self.places.targets and axis == "C":
            return self.places.targets[index][0]
        if axis != "P":
            return self.places.at(axis, index)
        if group is not None:
            numbers = {group_of(pid, group[0]): pid for pid in PIDS}
            index = numbers.get(index, group[0])
        for axis, kind in enumerate(self.launch.grid):
            if index == PIDS[axis] and kind in AXES:
                number, own = Symbol(f"own_{axis}"), frozenset({axis})
                return Place(number, "P", "own", False, M, None, False, own)
        raise NotRead(f"row {index} is not a program's own")

    def _bounds(self, mask: Mask, places: list[Place], verb: str) -> set[str]:
        """The axes along which a mask leaves out exactly what is past the end.

        For blocks that do not divide a size. It stops a mask that leaves out an entry, or lets one past the end in.
        """
        bounds: dict[Place, set] = {}
        guards, apart = frozenset().union(*self.guards), False
        for e, bound in mask.below | guards:
            if self.places.below(e, bound):
                continue
            place = self.places.of(e)
            if place in places:
                bounds.setdefault(place, set()).add(expand(bound))
            elif verb == "reads" and (e, bound) not in mask.below:
                apart = True  # what is read here is used under the guard alone
            else:
                raise NotRead(f"{verb} only where {e} < {bound}, of another place")
        axes = set()
        for place in places:
            ends = bounds.get(place, set())
            if not ends and not place.past:
                continue
            name = "column" if place.axis == "C" else "row"
            edge, sizes = f"{name}s < {place.end}", self.places.example(place)
            past_end = f"; at {sizes} it {verb} {name} 3" if sizes else ""
            if not ends:
                kind = NotRead if apart else Wrong
                raise kind(f"{verb} past the end: its mask needs {edge}{past_end}")
            end = least(*ends)
            of_others = isinstance(place.end, LEAST) and end in place.end.args
            if of_others and verb == "reads":
                continue  # what it reads past its own rows is another program's
            if end != place.end:
                mixed = ends | {place.end} == {M, N}  # which of the two is the smaller?
                past = (end - place.end).is_positive or mixed
                names = sorted({str(s) for s in end.free_symbols} & self.unbound)
                words = f"{verb} where {name}s < {end}, not where {edge}"
                if names:
                    raise NotRead(f"{words}; bind {', '.join(names)}")
                if not past or apart:
                    raise NotRead(words)
                if mixed and not self.launch.called:
                    (other,) = {M, N} - {place.end}
                    past_end = (
                        f"; at {place.end} = 3, {other} = 2 it leaves out {name} 2"
                    )
                raise Wrong(f"{words}{past_end}")
            axes.add(place.axis)
        return axes

    # loads

    def load(self, pointer: Pointer, mask: Mask, other: Expr | None) -> Number:
        """What a load gives, in each kind of lane; other: what a masked lane holds.

        Numbers of which nothing is known stand for a load that is not followed, and reading goes on. It finds what does
        not compile after such a load, and proves nothing.
        """
        try:
            return self._load(pointer, mask, other)
        except NotRead as reason:
            if isinstance(reason, Wrong):
                raise
            reason.line = self.line
            self.unread.append(reason)
            return Number((nan,) * 4, pointer.axes, frozenset(), dtype=FLOATS)

    def _load(self, pointer, mask, other):
        bound, by_letter = self.entry(pointer)
        if "p" in by_letter:
            raise NotRead(f"{pointer.name} is read from a program's own row")
        places = [*by_letter.values()]
        left = self._bounds(mask, places, "reads")
        row, column = by_letter.get("i"), by_letter.get("j")
        access = Access(row, column, tuple(self.places.active), self.line)
        inside, rounded = self._stored(pointer, access)
        if inside is None:
            if bound.before is None:
                raise Wrong(f"{pointer.name} is read before it is written")
            if isinstance(bound, Zeros):
                self.zeros.add(pointer.name)
            inside = entry_of(bound.before, [(SIZE[p.axis], p.symbol) for p in places])
        self.loads.setdefault(pointer.name, []).append(access)
        if is_target(inside):
            column = self.places.target_of(row)
            self.widths.keep_target(column)
            return Index(column, dtype=frozenset({"int32", "int64"}))
        if column is not None and column.symbol in self.places.targets:
            inside = self._at_target(inside, column, row)
            places, column = [row], None
        masked = self.fill if other is None else other
        if other is None and left & {p.axis for p in places if p.past}:
            self.filled.add(self.line)

        def past(*ends):
            """What a lane holds past the ends of these places."""
            if not any(ends):
                return inside
            axes = {place.axis for place in ends if place and place.past}
            if not axes:
                return S.Zero
            return masked if axes <= left else nan

        parts = inside, past(column), past(row), past(column, row)
        number = Number(parts, pointer.axes, frozenset(places), dtype=FLOATS)
        return replace(number, rounded=rounded)

    def _at_target(self, inside, column, row):
        """The entry in the column of a row's target, as the sum of the entries times 0 or 1.

        For x[i, target[i]]. It stops the column of another row's target.
        """
        if self.places.targets[column.symbol][1] != row:
            raise NotRead("the column of another row's target")
        letters = column.symbol
        return total(N, lambda r: ONEHOT[row.symbol, r] * inside.xreplace({letters: r}))

    def _stored(self, pointer, access):
        """(what this program has stored in that entry, where it was rounded); None where it has stored nothing.

        For x + residual, which is stored and read again. It stops a read of tiles that no store has reached.
        """
        name = pointer.name
        stores = self.stores.get(name)
        if name in self.faults:
            raise NotRead(f"{name} is read after a store that is not followed")
        if not stores:
            return None, ""
        for store in stores:
            self._apart(name, store, access)
        same = any(s.column == access.column for s in stores)
        if not self._all_columns(name, stores) and not same:
            raise NotRead(f"{name} is read where it may not be written yet")
        self.assumed[f"what a program stores in {name} it reads there again"] = None
        if not pointer.axes:
            self._say_unfenced(stores)
        pairs = (i, access.row), (j, access.column)
        symbols = {letter: p.symbol for letter, p in pairs if p is not None}
        return stores[0].value.xreplace(symbols), stores[0].rounded

    def fence(self) -> None:
        """tl.debug_barrier(): every thread of the program sees what is stored until here."""
        if not self.guards:
            for stores in self.stores.values():
                self.fenced.update(store.line for store in stores)

    def _say_unfenced(self, stores):
        """Say which stores other threads of the program read, without a barrier in between.

        For a number of a row that is stored and read again. It stops a number that one thread stores and the others
        read before; a tile, which has one size in a kernel, is read by the threads that stored it.
        """
        for line in sorted({store.line for store in stores} - self.fenced):
            words = f"stores in line {line} that are done before line {self.line} reads"
            self.told[f"{words} them, without a barrier"] = None

    def _apart(self, name, store, load):
        """Refuses a load of what another turn or another program may write.

        For a kernel that overwrites what it reads. It stops a load of a later turn's tile, or of what others add to.
        """
        same = [place for place in store.places if place in load.places]
        both = set(store.loops) & set(load.loops)
        if store.row != load.row or not both <= {p.loop for p in same}:
            raise NotRead(f"{name} is read and written in different turns of a loop")
        if store.atomic or self.launch.axes.difference(*[p.pids for p in same]):
            raise NotRead(f"{name} is read where another program may write it")

    # stores

    def add_under_lock(self, pointer: Pointer, value: Number, mask: Mask):
        """Keeps what all programs of a group add to one row, one after the other, of which the first one stores it.

        For dw of Triton's tutorial. It stops a row that other programs may use under another lock.
        """
        if pointer.name not in self.launch.groups:
            raise NotRead(f"{pointer.name}: what is added to under a lock")
        self._store(pointer, value, mask, LOCKED)

    def store(self, pointer: Pointer, value: Number, mask: Mask, atomic: bool):
        """Keeps what a store leaves in memory; what is wrong with it is kept, too, and the reading goes on."""
        try:
            self._store(pointer, value, mask, atomic)
            self.in_first_row[pointer.name] = False
        except NotRead as reason:
            if self.launch.arguments[pointer.name].before is not None:
                raise  # what was read there may be another value in another turn
            reason.line = self.line
            self.faults.setdefault(pointer.name, reason)
            self.keep_first_row(pointer, mask)

    def keep_first_row(self, pointer, mask):
        """Keeps whether all stores in a tensor are in its first row, whatever they are: below the number of columns.

        For a kernel whose programs take the columns of one row. It stops a kernel without rows, where M is 2.
        """
        below = any(
            expand(e - pointer.offset.e) == 0 and expand(N - end).is_nonnegative
            for e, end in mask.below
        )
        self.in_first_row[pointer.name] = (
            self.in_first_row.get(pointer.name, True) and below
        )

    def _store(self, pointer, value, mask, atomic):
        """Keeps a store of one value in each entry.

        For every output. It stops lanes or turns that store in one entry, a part of a sum, and what is not known.
        """
        name = pointer.name
        bound, by_letter = self.entry(pointer)
        if bound.after is None or atomic and not isinstance(bound, Out):
            raise NotRead(f"{name} is written, and bound as what the kernel reads")
        places = [p for p in by_letter.values() if p.axis != "P"]
        if any(p.symbol in self.places.targets for p in places):
            raise NotRead(f"{name}: a store in the column of a target alone")
        self._bounds(mask, places, "writes")
        lanes = set(pointer.axes) - {"1"}
        if lanes != {p.axis for p in places if p.lanes}:
            raise NotRead(f"{name}: several lanes are written to one entry")
        if value.axes and not pointer.axes:
            raise uncompiled(f"{name}: lanes are stored at an address that has none")
        if len(value.axes) > len(pointer.axes):
            raise NotRead(f"{name}: a value of more axes than its address")
        if set(fit(pointer.axes, value.axes)) - {"1"} != lanes:
            raise NotRead(f"{name}: a value of more lanes than its address")
        if value.pending:
            raise NotRead("a sum is stored before it is complete")
        value = self._all_rows(name, value, by_letter, atomic)
        if value.inside in (nan, -oo):
            raise Unknown(f"{name}: what is not known is stored")
        if {e.base for e in value.inside.atoms(Indexed)} & self.moving.keys():
            raise NotRead(f"{name}: what is stored depends on the largest of a tile")
        symbols = {
            p.symbol: HERE[letter] for letter, p in by_letter.items() if letter != "p"
        }
        inside = value.inside.xreplace(symbols)
        indices = {p.symbol for p in self.places.found()}
        if held(inside) or inside.free_symbols & indices:
            raise NotRead(f"{name}: what is stored depends on another entry's place")
        row = by_letter.get("i", by_letter.get("p"))
        loops = tuple(self.places.active)
        column = by_letter.get("j")
        given = row, column, loops, self.line, inside, atomic, value.rounded
        access = Access(*given)
        own = [row, access.column, value.place("R") if atomic else None]
        if not set(loops) <= {p.loop for p in own if p is not None}:
            raise NotRead(f"{name}: the turns of a loop store in one entry")
        for load in self.loads.get(name, []):
            self._apart(name, access, load)
        self.stores.setdefault(name, []).append(access)

    def _all_rows(self, name, value, by_letter, atomic):
        """A value that every program adds to, as the sum over all rows.

        For dw by atomic additions, or by a row for each program. It stops a store by each program in one entry.
        """
        place = value.place("R")
        if "i" in by_letter:
            if value.share:
                # each of M programs has one row, where its rows lie M apart
                kind = NotRead if by_letter["i"].loop is None else Wrong
                raise kind(
                    f"{name}: a sum over a program's rows is stored for each row"
                )
            if atomic:
                raise NotRead(f"{name}: an addition to an entry of each row")
            return value
        share = value.share
        if place is not None:
            alone = place.cover == "own" and not place.lanes
            if not alone or share or not atomic and place.loop is not None:
                raise NotRead(f"{name}: a value of one row is stored for all rows")
            inside = total(M, lambda r: value.inside.xreplace({place.symbol: r}))
            value = replace(value, parts=(inside, *value.parts[1:]))
            share = place.pids
        if name in self.launch.groups and atomic is not LOCKED:
            raise NotRead(f"{name}: several programs write to one row without a lock")
        pids = {letter: p.pids for letter, p in by_letter.items()}
        own = pids.get("p", frozenset())
        if atomic:
            axes = self.launch.axes - share - pids.get("j", frozenset())
            if axes:
                raise Wrong(f"{name}: programs along axis {min(axes)} add, too")
            if own and atomic is not LOCKED:
                raise NotRead(f"{name}: a program adds to a row of its own")
            if not own:
                self.assumed[f"{name} {BEFORE}"] = None
        elif share - own:
            raise Wrong(f"{name}: each program stores a sum over its own rows there")
        elif own - share:
            raise Wrong(f"{name}: a program stores what is no sum over its own rows")
        return value

    # the end

    def decides(self, reasons: Iterable[NotRead]) -> bool:
        """Whether a reading ends by what masked lanes hold that are loaded without `other`."""
        return bool(self.filled) and any(isinstance(r, Unknown) for r in reasons)

    def _all_columns(self, name, stores) -> bool:
        """Whether stores of one value reach every column once.

        For the last tile apart. It stops a sweep that leaves a tile out, and a second store of another value.
        """
        for store in stores[1:]:
            if nf(expand(store.value - stores[0].value)) != 0:
                raise NotRead(f"{name} is written twice, with different values")
        covers = [s.column.cover for s in stores if s.column is not None]
        if not covers or covers == ["grid"]:
            return len(stores) == 1
        if "grid" in covers:
            raise NotRead(f"{name} is written twice")
        column, total = S.Zero, self.launch.column_tiles
        if (0, expand(total - 1)) in covers:
            return True
        while covers:
            following = [c for c in covers if expand(c[0] - column) == 0]
            if len(following) != 1:
                return False
            covers.remove(following[0])
            column = expand(following[0][1] + 1)
        return column == total

    def _left_out(self, place):
        """The first column that tiles of two columns leave out, in words; "" where that is not known."""
        block, sizes = self.places.column_block, {}
        for columns in (3, 5):
            if not self.launch.called:
                sizes = self.launch.at({M: 3, N: columns})
            first, last = (sympify(e).xreplace(sizes) for e in place.cover)
            if not (block in sizes and first.is_Integer and last.is_Integer):
                return ""
            lacking = {*range(sizes[COLUMN_TILES])} - {*range(first, last + 1)}
            if lacking:
                column = min(lacking) * sizes[block]
                return f"; at N = {columns}, {block} = {sizes[block]} column {column}"
        return ""

    def left(self) -> dict[str, Expr]:
        """{argument: what it holds in the end, in i and j}, of those whose stores are followed."""
        for name, bound in self.launch.arguments.items():
            if isinstance(bound, T) and bound.after and name not in self.stores:
                self.faults.setdefault(name, Wrong(f"{name} is not written"))
        for name, stores in self.stores.items():
            try:
                self._left(name, stores)
            except NotRead as reason:
                reason.line = stores[0].line
                self.faults.setdefault(name, reason)
        return {
            name: stores[0].value
            for name, stores in self.stores.items()
            if name not in self.faults
        }

    def _left(self, name, stores):
        """Refuses stores that leave out places, or write some twice.

        For every output. It stops a sweep without its first tile, and a second axis of programs that store the same.
        """
        if not self._all_columns(name, stores):
            if len(stores) > 1:
                raise NotRead(f"{name}: columns are left out")
            example = self._left_out(stores[0].column)
            raise Wrong(f"{name}: columns are left out{example}")
        if any(store.row != stores[0].row for store in stores):
            raise NotRead(f"{name} is written for different rows")
        if any(store.atomic for store in stores) and len(stores) > 1:
            raise NotRead(f"{name} is added to at two places")
        axes = self.launch.axes.difference(*[p.pids for p in stores[0].places])
        if axes and not stores[0].atomic:
            raise NotRead(
                f"{name}: all programs along axis {min(axes)} write the same entries"
            )
