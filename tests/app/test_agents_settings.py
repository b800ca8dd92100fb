"""Who plays which role: what can be said, what is refused, and who is chosen in the end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.agents.gateway.upstream import ModelRoute
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.models import KeyRing, route_of
from fairwitness.app.settings.agents import ORDER, agents_settings, choose, role_named
from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.agents.role import ModelClass
from fairwitness.contracts.agents.settings import AgentsSettings, BackendSettings, ModelChoice, ProviderKind
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import NotReady, UsageError
from support.trust import trust

pytestmark = pytest.mark.req("X3")

EVERYTHING = """
[agents]
default = "claude"
[agents.models]
strong = "claude-opus-4-5"
fast = "claude-haiku-4-5"
[agents.reviewer]
agent = "gemini"
[agents.reviewer.security-sentinel]
agent = "codex"
model = "gpt-5.5"
[agents.implementer]
agent = "codex"
model = "gpt-5"
[agents.backend.local]
provider = "openai"
base_url = "http://localhost:11434/v1"
model = "qwen3-coder"
"""


def read(folder: Path, project: str | None = None, user: str | None = None) -> tuple[AgentsSettings, str]:
    """The settings of a checkout and a user's file with these texts."""
    theirs, top = folder / "user" / "fairwitness.toml", folder / "checkout"
    for place, text in ((top / "fairwitness.toml", project), (theirs, user)):
        place.parent.mkdir(exist_ok=True)
        if text is not None:
            place.write_text(text)
    if project is not None:
        trust(top)
    read = agents_settings(top, ROLES, user=theirs)
    return read.settings, read.digest


def nobody(name: str) -> Probe:
    return Probe(name=name, kind="acp", found=False, tier=EnforcementTier.C)


def only(*found: str, lacking: tuple[str, ...] = ()) -> Callable[[str], Probe]:
    def probe(name: str) -> Probe:
        missing = ("Node.js",) if name in lacking else ()
        return Probe(name=name, kind="acp", found=name in found, tier=EnforcementTier.C, missing=missing)

    return probe


def never(name: str) -> Probe:
    raise AssertionError(f"{name} was looked for")


def chosen(settings: AgentsSettings, role: Role, instance: str = "", override: str | None = None) -> ModelChoice:
    return choose(ROLES[role], instance, settings, override, never)


def test_without_settings_there_are_none(tmp_path: Path) -> None:
    assert read(tmp_path)[0] == AgentsSettings()
    assert agents_settings(None, ROLES, user=tmp_path / "nowhere")[0] == AgentsSettings()


def test_every_setting_can_be_said(tmp_path: Path) -> None:
    settings, digest = read(tmp_path, EVERYTHING)
    assert settings.default == "claude"
    assert settings.models == {ModelClass.STRONG: "claude-opus-4-5", ModelClass.FAST: "claude-haiku-4-5"}
    assert settings.roles[Role.REVIEWER].instances["security-sentinel"].agent == "codex"
    assert settings.backend["local"].provider is ProviderKind.OPENAI
    assert digest == verify_settings(tmp_path / "checkout", user=tmp_path / "user" / "fairwitness.toml")[1]


def test_the_digest_changes_with_what_was_read(tmp_path: Path) -> None:
    first = read(tmp_path, '[agents]\ndefault = "claude"\n')[1]
    assert read(tmp_path, '[agents]\ndefault = "codex"\n')[1] != first


@pytest.mark.parametrize(
    ("role", "instance", "expected"),
    [
        (Role.REVIEWER, "security-sentinel", ModelChoice(agent="codex", model="gpt-5.5")),
        (Role.REVIEWER, "pragmatic-verifier", ModelChoice(agent="gemini")),
        (Role.IMPLEMENTER, "task-03", ModelChoice(agent="codex", model="gpt-5")),
        (Role.PLANNER, "planner", ModelChoice(agent="claude", model="claude-opus-4-5")),
        (Role.RESEARCHER, "researcher-impact", ModelChoice(agent="claude", model="claude-haiku-4-5")),
    ],
)
def test_the_narrowest_word_counts_and_a_model_goes_with_its_agent(
    tmp_path: Path, role: Role, instance: str, expected: ModelChoice
) -> None:
    assert chosen(read(tmp_path, EVERYTHING)[0], role, instance) == expected


def test_a_persons_word_on_the_command_line_outranks_everything(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, EVERYTHING)
    assert chosen(settings, Role.IMPLEMENTER, "task-03", "goose") == ModelChoice(agent="goose")
    assert chosen(settings, Role.PLANNER, "", "local") == ModelChoice(agent="local", model="qwen3-coder")
    assert chosen(settings, Role.IMPLEMENTER, "task-03", "codex") == ModelChoice(agent="codex", model="gpt-5")
    assert chosen(settings, Role.PLANNER, "", "claude").model == "claude-opus-4-5"


def test_a_model_of_the_role_is_not_given_to_another_agent_of_one_instance(tmp_path: Path) -> None:
    text = '[agents]\ndefault = "claude"\n[agents.reviewer]\nmodel = "opus"\n[agents.reviewer.pragmatic-verifier]\n'
    settings, _ = read(tmp_path, text + 'agent = "codex"\n')
    assert chosen(settings, Role.REVIEWER, "pragmatic-verifier") == ModelChoice(agent="codex")
    assert chosen(settings, Role.REVIEWER, "security-sentinel") == ModelChoice(agent="claude", model="opus")


def test_the_project_has_the_last_word_key_by_key(tmp_path: Path) -> None:
    user = (
        '[agents]\ndefault = "claude"\n[agents.models]\nstrong = "opus"\nfast = "haiku"\n[agents.spec]\nmodel = "a"\n'
    )
    project = '[agents.models]\nfast = "sonnet"\n[agents.spec]\nmodel = "b"\n[agents.planner]\nagent = "codex"\n'
    settings, _ = read(tmp_path, project, user)
    assert settings.default == "claude"
    assert settings.models == {ModelClass.STRONG: "opus", ModelClass.FAST: "sonnet"}
    assert (settings.roles[Role.SPEC].model, settings.roles[Role.PLANNER].agent) == ("b", "codex")


def test_another_agent_does_not_inherit_the_models_of_the_one_below(tmp_path: Path) -> None:
    user = '[agents]\ndefault = "claude"\n[agents.models]\nstrong = "opus"\n[agents.spec]\nagent = "x"\nmodel = "a"\n'
    settings, _ = read(tmp_path, '[agents]\ndefault = "codex"\n[agents.spec]\nagent = "y"\n', user)
    assert settings.models == {}
    assert (settings.roles[Role.SPEC].agent, settings.roles[Role.SPEC].model) == ("y", None)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ('[agents.reviewr]\nagent = "x"\n', "agents.reviewr", "a role (adversarial-reviewer, captain"),
        ('[agents.reviewer.nobody]\nagent = "x"\n', "agents.reviewer.nobody", "agent, model, security-sentinel"),
        ('[agents.implementer.task-01]\nagent = "x"\n', "agents.implementer.task-01", "one of agent, model"),
        ('[agents.implementer]\nagnet = "x"\n', "agents.implementer.agnet", "one of agent, model"),
        ('[agents]\nimplementer = "claude"\n', "agents.implementer", 'a table, such as { agent = "claude" }'),
        ("[agents]\ndefault = 5\n", "agents.default", "text"),
        ('[agents]\ndefault = "../x"\n', "agents.default", "a name of letters"),
        ('[agents.models]\nsmart = "x"\n', "agents.models.smart", "'strong' or 'fast'"),
        ('[agents.spec]\nmodel = "a\\nb"\n', "agents.spec.model", "one line"),
        ('[agents.backend.b]\nmodel = "x"\n', "agents.backend.b.provider", "this field"),
        ('[agents.backend.b]\nprovider = "acme"\n', "agents.backend.b.provider", "'anthropic', 'openai'"),
        ('[agents.backend.api]\nprovider = "openai"\n', "agents.backend.api", "another name"),
        ('[agents.reviewer]\nagent="a"\n[agents.adversarial-reviewer]\nagent="b"\n', "agents.", "only once"),
        ("agents = 1\n", "agents", "a table"),
        ("[agents]\ndefault = 1979-05-27\n", "agents", "only texts"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_sentence(tmp_path: Path, text: str, key: str, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert refused.value.what.startswith(f"fairwitness.toml: {key}")
    assert expected in refused.value.what
    assert "\n" not in refused.value.what


@pytest.mark.parametrize(
    "text",
    [
        '[agents.backend.b]\nprovider = "openai"\nkey = "sk-abc"\n',
        '[agents.backend.b]\nprovider = "openai"\napi_key = "sk-abc"\n',
        '[agents.implementer]\ntoken = "x"\n',
        '[verify.setup.env]\nkey_env = "sk-abc"\n',
        '[agents.models]\nkey_cmd = "x"\n',
    ],
)
def test_a_key_in_fairwitness_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no key, token, password or other secret"):
        read(tmp_path, None, text)


@pytest.mark.parametrize("value", ['"sk-ant-api03-abcdef"', '"lower_case"', '"A B"', '""'])
def test_a_key_where_its_variable_belongs_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"agents\.backend\.b\.key_env"):
        read(tmp_path, None, f'[agents.backend.b]\nprovider = "openai"\nkey_env = {value}\n')


def test_a_key_inside_the_command_that_should_fetch_it_is_refused(tmp_path: Path) -> None:
    text = '[agents.backend.b]\nprovider = "openai"\nkey_cmd = ["echo", "sk-ant-api03-abcdefghijklmnopqrst"]\n'
    with pytest.raises(UsageError, match="a command that fetches the key, not the key"):
        read(tmp_path, None, text)


OWN = '[agents.backend.work]\nprovider = "openai"\nbase_url = "https://models.example.org/v1"\n'


def test_a_person_may_say_where_their_key_is(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, None, f'{OWN}key_cmd = ["pass", "show", "work"]\n')
    assert settings.backend["work"].key_cmd == ("pass", "show", "work")


@pytest.mark.parametrize(
    "text",
    [
        f'{OWN}key_env = "OPENAI_API_KEY"\n',
        OWN,
        '[agents.backend.work]\nprovider = "openai"\n',
        '[agents.backend.claude]\nprovider = "anthropic"\nbase_url = "http://127.0.0.1.example.org"\n',
        '[agents.backend.c]\nprovider = "openai"\nbase_url = "http://[bad/v1"\n',
        '[agents.backend.b]\nprovider = "openai"\nbase_url = "http://localhost/v1"\nkey_cmd = ["curl", "x"]\n',
    ],
)
def test_a_repository_may_neither_name_a_key_nor_send_one_anywhere(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text, f'{OWN}key_env = "WORK_KEY"\n')
    assert "your own configuration" in refused.value.next_step


def test_a_repository_cannot_aim_a_persons_key_elsewhere_piece_by_piece(tmp_path: Path) -> None:
    project = '[agents.backend.work]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n'
    settings, _ = read(tmp_path, project, f'{OWN}key_env = "WORK_KEY"\n')
    assert settings.backend["work"].key_env is None


class TestFinding:
    """Nobody chose."""

    def test_the_first_that_can_be_used_is_taken_in_the_order_that_is_written_down(self) -> None:
        assert ORDER[0] == "claude"
        assert ORDER[-1] == "api"
        spec = ROLES[Role.SPEC]
        assert choose(spec, "", AgentsSettings(), None, only("gemini", "codex")).agent == "codex"
        assert choose(spec, "", AgentsSettings(), None, only("api", "vibe")).agent == "vibe"
        assert choose(spec, "", AgentsSettings(), None, only("api")).agent == "api"

    def test_one_that_lacks_something_is_passed_over(self) -> None:
        found = choose(ROLES[Role.SPEC], "", AgentsSettings(), None, only("claude", "goose", lacking=("claude",)))
        assert found.agent == "goose"

    def test_where_there_is_none_a_sentence_says_three_ways_on(self) -> None:
        with pytest.raises(NotReady) as refused:
            choose(ROLES[Role.SPEC], "", AgentsSettings(), None, nobody)
        assert all(word in refused.value.next_step for word in ("install", "API_KEY", "cassette"))

    def test_models_of_the_settings_are_for_whoever_is_found(self) -> None:
        settings = AgentsSettings(models={ModelClass.STRONG: "big"})
        assert choose(ROLES[Role.SPEC], "", settings, None, only("codex")) == ModelChoice(agent="codex", model="big")


def test_a_role_is_known_by_its_short_name_too() -> None:
    assert role_named("reviewer") is role_named("adversarial-reviewer") is Role.REVIEWER
    with pytest.raises(UsageError, match="there is no role 'boss'"):
        role_named("boss")


class TestRoutes:
    """Where the models of an agent are."""

    @staticmethod
    def route(
        agent: str, folder: Path, model: str | None = None, settings: AgentsSettings | None = None, **environment: str
    ) -> ModelRoute:
        keys = KeyRing(environment, folder / "keys")
        return route_of(agent, model, settings or AgentsSettings(), keys=keys)

    def test_an_agent_goes_to_the_provider_of_its_dialect(self, tmp_path: Path) -> None:
        route = self.route("claude", tmp_path, ANTHROPIC_API_KEY="anthropic-key-1")
        assert (route.provider.dialect, route.provider.base_url) == (ApiDialect.ANTHROPIC, "https://api.anthropic.com")
        assert route.provider.key is not None
        assert self.route("claude", tmp_path, "opus", ANTHROPIC_API_KEY="anthropic-key-1").model == "opus"

    def test_without_a_key_it_says_which(self, tmp_path: Path) -> None:
        with pytest.raises(NotReady, match="OPENAI_API_KEY"):
            self.route("codex", tmp_path)
        with pytest.raises(NotReady, match="there is no key for a model"):
            self.route("api", tmp_path)

    def test_api_takes_the_first_key_there_is(self, tmp_path: Path) -> None:
        gemini, openai = "gemini-key-1", "openai-key-1"
        assert self.route("api", tmp_path, GEMINI_API_KEY=gemini).provider.dialect is ApiDialect.GEMINI
        both = self.route("api", tmp_path, GEMINI_API_KEY=gemini, OPENAI_API_KEY=openai)
        assert both.provider.dialect is ApiDialect.OPENAI_CHAT

    def test_a_key_that_is_there_and_cannot_be_used_is_no_reason_to_take_another(self, tmp_path: Path) -> None:
        with pytest.raises(NotReady, match="is no key"):
            self.route("api", tmp_path, ANTHROPIC_API_KEY="short", OPENAI_API_KEY="openai-key-1")

    def test_a_server_of_ones_own_gets_no_key_that_was_not_meant_for_it(self, tmp_path: Path) -> None:
        local = BackendSettings(provider=ProviderKind.OPENAI, base_url="http://localhost:11434/v1", model="qwen3")
        settings = AgentsSettings(backend={"local": local})
        route = self.route("local", tmp_path, settings=settings, OPENAI_API_KEY="openai-key-1")
        assert (route.provider.key, route.model) == (None, "qwen3")
        far = local.model_copy(update={"base_url": "https://models.example.org/v1"})
        with pytest.raises(NotReady, match="has no key"):
            self.route("far", tmp_path, settings=AgentsSettings(backend={"far": far}), OPENAI_API_KEY="openai-key-1")
        named = AgentsSettings(backend={"far": far.model_copy(update={"key_env": "WORK_KEY"})})
        assert self.route("far", tmp_path, settings=named, WORK_KEY="work-key-123").provider.key is not None

    def test_an_agent_cannot_be_given_a_provider_it_does_not_speak_to(self, tmp_path: Path) -> None:
        wrong = BackendSettings(provider=ProviderKind.OPENAI, base_url="http://localhost/v1")
        with pytest.raises(UsageError, match="claude speaks anthropic"):
            self.route("claude", tmp_path, settings=AgentsSettings(backend={"claude": wrong}))
