"""What a demo is made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing that was tried, what should have come of it, and what came of it."""

    title: str
    promised: str
    outcome: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Demo:
    """All scenes, and whether each came out as promised."""

    scenes: tuple[Scene, ...]

    @property
    def as_promised(self) -> bool:
        """True if nothing surprised us."""
        return all(scene.outcome == scene.promised for scene in self.scenes)
