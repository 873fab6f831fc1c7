"""Preference vectors ``[K, m]``: unit, non-negative, float64. A preference is the direction of the loss vector."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from paretomtl._support.argument_checks import as_rows, check_count, check_seed, check_tasks, is_number, quote

_INNER = 0.5  # lower bound for vectors off the boundary, as a share of the middle's entries
_LEAST = 0.05  # the usual smallest share of a task in a row of importances
_DUPLICATE = 1e-4  # vectors closer than this share a region up to rounding


def usual_count(tasks: int) -> int:
    """The default number of vectors by the number of tasks; docs/guides/how-many.md measures what more of them gain.

    Example:
        >>> [usual_count(tasks) for tasks in (2, 3, 4, 10)]
        [5, 15, 25, 25]
    """
    tasks = check_tasks("tasks", tasks)
    return {2: 5, 3: 15}.get(tasks, 25)


def even(count: int, tasks: int) -> Tensor:
    r"""Evenly spread vectors: the paper's default (section 4.2.3).

    For two tasks :math:`(\cos\frac{k\pi}{2(K-1)}, \sin\frac{k\pi}{2(K-1)})` with :math:`k = 0, \dots, K-1`, from the
    axis of the first loss to that of the second. For more tasks, by the number of vectors:

    - One vector is the middle, :math:`(1, \dots, 1) / \sqrt m`, for any number of tasks.
    - Fewer vectors than tasks: the middle first, and the others spread around it.
    - As many as tasks: one vector per task, half way between its axis and the middle.
    - More than tasks: the axes, the middle, and the others spread between them. Every second one of the others, up to
      m (m - 1), has no entry below half of the middle's: least energy alone would drive nearly all vectors to the
      boundary, where they ask for losses of zero.

    "Spread" means least Riesz energy on the positive part of the sphere. The same arguments always give the same
    vectors. :func:`~paretomtl.preferences.lattice_or_energy` is the layout without a middle.

    Example:
        >>> even(3, tasks=2)
        tensor([[1.0000, 0.0000],
                [0.7071, 0.7071],
                [0.0000, 1.0000]], dtype=torch.float64)
        >>> even(6, tasks=4)[4]  # after the four axes
        tensor([0.5000, 0.5000, 0.5000, 0.5000], dtype=torch.float64)
    """
    count = check_count("count", count)
    tasks = check_tasks("tasks", tasks)
    middle = _unit(torch.ones(1, tasks, dtype=torch.float64))
    if count == 1:
        return middle
    if tasks == 2:
        angle = torch.linspace(0.0, math.pi / 2, count, dtype=torch.float64)
        return torch.stack([angle.flip(0).sin(), angle.sin()], -1)
    axes = torch.eye(tasks, dtype=torch.float64)
    if count == tasks:
        return _unit(axes + middle)  # both have unit length, so the sum halves the angle
    fixed = middle if count < tasks else torch.cat([axes, middle])
    others = count - len(fixed)
    if others == 0:
        return fixed
    number = torch.arange(others)[:, None]
    # In few dimensions, many vectors fill the inside by themselves; more would crowd it.
    inside = (number % 2 == 1) & (number < 2 * tasks * (tasks - 1))
    return _unit(_least_energy(fixed, others, torch.where(inside, _INNER * middle, 0.0)))


def interior(count: int, tasks: int, *, least: float | None = None) -> Tensor:
    r"""Importances that spread over the inside of the simplex: rows sum to one and give no task less than ``least``.

    The weights of linear scalarization (section 3.2, equation 2). A row at a corner of the simplex never trains a
    task; a row near it still does. With a well spaced point p of the simplex, a row is

    .. math:: w = \text{least} + (1 - m \cdot \text{least})\, p .

    By the number of rows, in descending order of the first entry, then of the second, and so on:

    - One row is the middle, :math:`(1, \dots, 1) / m`.
    - Two tasks: evenly spaced, from :math:`(1 - \text{least}, \text{least})` to its mirror image.
    - At most as many as tasks: the tasks in that many groups of neighbours, and each row half way between the middle
      and what favours its group most. So every task is favoured once; the middle itself is not among the rows.
    - More than tasks: the rows that favour one task as much as allowed, the middle, and others between them. They are
      the lattice of Das and Dennis where it has that many points with the middle; otherwise the others start where
      the largest hole is and move to the least mean squared distance from a sample of the simplex.

    The same arguments always give the same rows.

    Args:
        count: the number of rows K.
        tasks: the number of tasks m.
        least: the smallest share of a task, at least 0 and under 1 / m. By default 0.05, and half of 1 / m for more
            than ten tasks.

    Returns:
        ``[K, m]``, float64.

    Example:
        >>> interior(3, tasks=2)
        tensor([[0.9500, 0.0500],
                [0.5000, 0.5000],
                [0.0500, 0.9500]], dtype=torch.float64)
        >>> interior(4, tasks=3, least=0.1)
        tensor([[0.8000, 0.1000, 0.1000],
                [0.3333, 0.3333, 0.3333],
                [0.1000, 0.8000, 0.1000],
                [0.1000, 0.1000, 0.8000]], dtype=torch.float64)
    """
    count = check_count("count", count)
    tasks = check_tasks("tasks", tasks)
    if least is None:
        least = min(_LEAST, 0.5 / tasks)
    elif not is_number(least) or not 0.0 <= least < 1.0 / tasks:
        raise ValueError(
            f"'least' must be at least 0 and under 1 / tasks ({1 / tasks:.4g}). Got {quote(least)} instead."
        )
    middle = torch.full((1, tasks), 1.0 / tasks, dtype=torch.float64)
    if count == 1:
        return middle
    if tasks == 2:
        share = torch.linspace(1.0 - least, least, count, dtype=torch.float64)
        return torch.stack([share, share.flip(0)], -1)
    if count <= tasks:
        groups = torch.arange(tasks) * count // tasks
        points = torch.nn.functional.one_hot(groups, count).T.double()
        points = (points / points.sum(-1, keepdim=True) + middle) / 2
    else:
        exact = _lattice_with_middle(count, tasks)
        points = _fill_holes(count, tasks) if exact is None else exact
    rows = least + (1.0 - tasks * least) * points
    rows[(points - middle).abs().amax(-1) < _DUPLICATE] = middle
    order = sorted(range(count), key=lambda k: [round(-value, 9) for value in rows[k].tolist()])
    return rows[order]


def _lattice_with_middle(count: int, tasks: int) -> Tensor | None:
    """The lattice of Das and Dennis and the middle of the simplex, if they are ``count`` points together."""
    divisions = 1
    while (size := math.comb(divisions + tasks - 1, tasks - 1) + (divisions % tasks != 0)) < count:
        divisions += 1
    if size != count:
        return None
    points = lattice(divisions, tasks)
    return points if len(points) == count else torch.cat([points, torch.full_like(points[:1], 1.0 / tasks)])


def _fill_holes(count: int, tasks: int, iterations: int = 50) -> Tensor:
    """The corners of the simplex, its middle and others between them: ``[count, m]``, with ``count > m + 1``.

    The others start by farthest-point insertion (Gonzalez, 1985) and then move by Lloyd's algorithm. Insertion alone
    would drive nearly all of them to the boundary, where most of the simplex is far away.
    """
    sample = _sample_simplex(max(2000, 20 * count), tasks)
    fixed = torch.cat([torch.eye(tasks, dtype=torch.float64), torch.full((1, tasks), 1.0 / tasks, dtype=torch.float64)])
    points, nearest = fixed, _distances(sample, fixed).amin(-1)
    while len(points) < count:
        farthest = sample[nearest.round(decimals=9).argmax()][None]  # rounded: equal holes go by order, not by rounding
        points = torch.cat([points, farthest])
        nearest = torch.minimum(nearest, _distances(sample, farthest)[:, 0])
    for _ in range(iterations):
        owner = _distances(sample, points).argmin(-1)
        total = torch.zeros_like(points).index_add_(0, owner, sample)
        size = owner.bincount(minlength=count)[:, None]
        moved = torch.cat([fixed, torch.where(size > 0, total / size.clamp_min(1), points)[len(fixed) :]])
        if torch.equal(moved, points):
            break
        points = moved
    return points


def _sample_simplex(size: int, tasks: int) -> Tensor:
    """Points of the simplex for measuring holes: a lattice, the same half way to the middle, and uniform draws.

    In many dimensions, uniform draws alone would miss the boundary, and a lattice alone the inside.
    """
    divisions = 1
    while math.comb(divisions + tasks, tasks - 1) <= size:
        divisions += 1
    boundary = lattice(divisions, tasks)
    uniform = torch.rand(size, tasks, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    share = -uniform.clamp_min(1e-12).log()
    return torch.cat([boundary, (boundary + 1.0 / tasks) / 2, share / share.sum(-1, keepdim=True)])


def _distances(points: Tensor, others: Tensor) -> Tensor:
    return torch.cdist(points, others, compute_mode="donot_use_mm_for_euclid_dist")


def lattice_or_energy(count: int, tasks: int) -> Tensor:
    """Vectors as far apart as possible, most of them on the boundary: the layout of stored studies.

    For three tasks and more, the lattice of Das and Dennis if it has exactly ``count`` points; otherwise points of
    least Riesz energy on the positive part of the sphere, with its corners if ``count >= tasks``. The middle may be
    missing. One vector, and two tasks, are as in :func:`even`.

    Example:
        >>> lattice_or_energy(3, tasks=3)
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]], dtype=torch.float64)
    """
    return even(count, tasks) if count == 1 or tasks == 2 else _unit(lattice_or_energy_rows(count, tasks))


def lattice_or_energy_rows(count: int, tasks: int) -> Tensor:
    """The rows of :func:`lattice_or_energy` before scaling to unit length; :func:`validate` gives the same bits.

    Only for three tasks and more.
    """
    count = check_count("count", count)
    tasks = check_tasks("tasks", tasks)
    divisions = 1
    while math.comb(divisions + tasks - 1, tasks - 1) < count:
        divisions += 1
    if math.comb(divisions + tasks - 1, tasks - 1) == count:
        return lattice(divisions, tasks)
    corners = torch.eye(tasks, dtype=torch.float64)[: tasks if count >= tasks else 0]
    return _least_energy(corners, count - len(corners))


def extreme(tasks: int, *, balanced: bool = False) -> Tensor:
    r"""Vectors that favour one task each, as in the paper's experiment on faces (supplement, table 1).

    Row i is :math:`(1, \dots, 0, \dots, 1) / \sqrt{m-1}` with the zero at i: a small loss for task i.

    Args:
        tasks: the number of tasks m.
        balanced: put the diagonal first, as the paper does for faces.

    Example:
        >>> extreme(2)
        tensor([[0., 1.],
                [1., 0.]], dtype=torch.float64)
    """
    tasks = check_tasks("tasks", tasks)
    rows = 1.0 - torch.eye(tasks, dtype=torch.float64)
    if balanced:
        rows = torch.cat([torch.ones(1, tasks, dtype=torch.float64), rows])
    return _unit(rows)


def random(count: int, tasks: int, *, seed: int = 0) -> Tensor:
    """Independent vectors, uniform on the positive part of the sphere (paper, supplement, section 5).

    Example:
        >>> random(4, tasks=3, seed=1).shape
        torch.Size([4, 3])
    """
    count = check_count("count", count)
    tasks = check_tasks("tasks", tasks)
    seed = check_seed("seed", seed)
    generator = torch.Generator().manual_seed(seed)
    return _unit(torch.randn(count, tasks, generator=generator, dtype=torch.float64).abs())


def biased(count: int, direction: Tensor | Sequence[float], *, concentration: float = 0.5) -> Tensor:
    """Evenly spread vectors, pulled towards a direction (paper, supplement, figure 12c).

    Each vector of :func:`even` moves along the great circle towards ``direction`` by the share ``concentration`` of its
    angle: 0 keeps the even set, and values near 1 gather all vectors close to the direction.

    Example:
        >>> biased(3, [1.0, 1.0], concentration=0.5)[0]  # half way between the axis and the diagonal: 22.5 degrees
        tensor([0.9239, 0.3827], dtype=torch.float64)
    """
    target = validate(as_rows("direction", direction)[None], name="direction")[0]
    if not is_number(concentration) or not 0.0 <= concentration < 1.0:
        raise ValueError(f"'concentration' must be at least 0 and under 1. Got {quote(concentration)} instead.")
    return drawn_towards(even(count, target.shape[0]), target, concentration)


def drawn_towards(start: Tensor, target: Tensor, concentration: float) -> Tensor:
    """Vectors ``[K, m]`` moved along great circles towards one of them ``[m]``, by a share of their angles."""
    angle = (start @ target).clamp(-1.0, 1.0).acos()[:, None]
    share = torch.where(angle > 1e-9, ((1 - concentration) * angle).sin() / angle.sin(), 1 - concentration)
    towards = torch.where(angle > 1e-9, (concentration * angle).sin() / angle.sin(), concentration)
    return validate(share * start + towards * target)


def around(direction: Tensor | Sequence[float], count: int, *, angle: float) -> Tensor:
    """Vectors near a direction, for a closer look at a trade-off (paper, section 4.2.3: preferences for another run).

    For two tasks they are evenly spaced, from ``angle`` degrees on one side to the same on the other, cut off at the
    axes. For more tasks the vectors of :func:`even` move towards the direction until the
    farthest is ``angle`` degrees away.

    Args:
        direction: the middle; ``[m]``, non-negative.
        count: how many vectors.
        angle: the largest angle to the direction in degrees.

    Example:
        >>> around([1.0, 1.0], 3, angle=5.0)
        tensor([[0.7660, 0.6428],
                [0.7071, 0.7071],
                [0.6428, 0.7660]], dtype=torch.float64)
    """
    count = check_count("count", count)
    target = validate(as_rows("direction", direction)[None], name="direction")[0]
    if not is_number(angle) or not 0.0 < angle <= 90.0:
        raise ValueError(f"'angle' must be over 0 and at most 90 degrees. Got {quote(angle)} instead.")
    if count == 1:
        return target[None]
    if len(target) == 2:
        middle = math.degrees(math.atan2(float(target[1]), float(target[0])))
        places = torch.linspace(max(0.0, middle - angle), min(90.0, middle + angle), count, dtype=torch.float64)
        radians = places.deg2rad()
        return validate(torch.stack([radians.cos(), radians.sin()], -1).clamp_min(0.0))
    farthest = math.degrees(float((even(count, len(target)) @ target).clamp(-1.0, 1.0).acos().max()))
    return biased(count, target, concentration=max(0.0, 1.0 - angle / farthest))


def validate(
    vectors: Tensor | Sequence[Sequence[float]], *, tasks: int | None = None, name: str = "preferences"
) -> Tensor:
    """Check vectors of a user and scale them to unit length.

    Args:
        vectors: ``[K, m]``, non-negative, no row all zero, no two rows with the same direction.
        tasks: the required number of columns, if it is known.
        name: the name of the argument in error messages.

    Example:
        >>> validate([[3.0, 4.0], [1.0, 0.0]])
        tensor([[0.6000, 0.8000],
                [1.0000, 0.0000]], dtype=torch.float64)
    """
    rows = as_rows(name, vectors)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(f"'{name}' must have shape [K, m] with K >= 1. Got {list(rows.shape)} instead.")
    check_tasks(f"{name}.shape[1]", rows.shape[1])
    if tasks is not None and rows.shape[1] != tasks:
        raise ValueError(f"'{name}' must have one column per task ({tasks}). Got {rows.shape[1]} columns instead.")
    for k, row in enumerate(rows.tolist()):
        if not all(math.isfinite(value) and value >= 0.0 for value in row):
            raise ValueError(f"'{name}' must be finite and non-negative. Got {quote(row)} in row {k} instead.")
        if not any(row):
            raise ValueError(
                f"'{name}' must have no row of zeros: it has no direction. Got {quote(row)} in row {k} instead."
            )
    rows = _unit(rows)
    close = (torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist") < _DUPLICATE).triu(1).nonzero()
    if len(close):
        first, second = close[0].tolist()
        raise ValueError(
            f"'{name}' must be distinct: equal directions share an empty region. "
            f"Got {quote(rows[first].tolist())} in rows {first} and {second} instead."
        )
    return rows


def lattice(divisions: int, tasks: int) -> Tensor:
    """The simplex lattice of Das and Dennis: all ``[m]`` multiples of 1/divisions that sum to one, first task first.

    Example:
        >>> lattice(2, 2)
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000],
                [0.0000, 1.0000]], dtype=torch.float64)
    """
    divisions = check_count("divisions", divisions)
    tasks = check_tasks("tasks", tasks)
    bars = torch.tensor(list(itertools.combinations(range(divisions + tasks - 1), tasks - 1)))
    edges = torch.cat([torch.full((len(bars), 1), -1), bars, torch.full((len(bars), 1), divisions + tasks - 1)], dim=1)
    return (edges.diff(dim=1) - 1).flip(0).double() / divisions


def _unit(rows: Tensor) -> Tensor:
    rows = rows / rows.amax(-1, keepdim=True)  # so that squares neither overflow nor vanish
    return torch.nn.functional.normalize(rows, dim=-1)


def _least_energy(fixed: Tensor, count: int, least: Tensor | None = None, iterations: int = 400) -> Tensor:
    """Fixed vectors and ``count`` more of least energy ``Σ 1 / distance^m``, before the latter have unit length.

    Takes projected gradient steps, whose length shrinks to zero; ``least`` is the lower bound of entries, 0 by default.
    """
    tasks = fixed.shape[-1]
    floor = fixed.new_zeros(()) if least is None else least
    moving = raw = random(count, tasks, seed=0)
    for iteration in range(iterations):
        rows = torch.cat([fixed, moving])
        away = moving[:, None, :] - rows[None, :, :]
        distance = away.square().sum(-1, keepdim=True).sqrt()
        force = torch.where(distance > 0, away / distance.clamp_min(1e-12) ** (tasks + 2), 0.0).sum(1)
        force = force - (force * moving).sum(-1, keepdim=True) * moving
        nearest = torch.where(distance > 0, distance, torch.inf).amin(1)
        length = 0.3 * nearest * (1 - iteration / iterations)
        raw = (moving + length * force / force.norm(dim=-1, keepdim=True).clamp_min(1e-12)).clamp_min(floor)
        moving = _unit(raw)
    return torch.cat([fixed, raw])
