"""The exported map of a repository, `.autopilot/repo-map.json`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import RelPath
from fairwitness.contracts.common.problems import expect


class RepoLanguage(StrEnum):
    """The language of a file, by its name."""

    TYPESCRIPT = "typescript"
    JAVASCRIPT = "javascript"
    PYTHON = "python"
    GO = "go"
    RUST = "rust"
    JAVA = "java"
    MARKDOWN = "markdown"
    JSON = "json"
    OTHER = "other"


class ExportType(StrEnum):
    """The kind of an exported name."""

    FUNCTION = "function"
    CLASS = "class"
    CONST = "const"
    DEFAULT = "default"
    TYPE = "type"
    INTERFACE = "interface"
    ENUM = "enum"


class Export(Contract):
    """A name that other files may use."""

    name: Text
    type: ExportType
    line: Positive


class Import(Contract):
    """Names imported from another file; `*` if they cannot be known."""

    source: Text
    names: Texts
    line: Positive


class Function(Contract):
    """The signature of a function; the result is null if it is not declared."""

    name: Text
    params: Texts
    line: Positive
    returns: Text | None


class Class(Contract):
    """A class with its base class, if any, and its public methods."""

    name: Text
    extends: Text | None
    methods: Texts
    line: Positive


class Call(Contract):
    """The functions that one function of the file calls."""

    caller: Text
    callees: Texts
    line: Positive


class MappedFile(Contract):
    """One file; fields other than the path are missing if the size limit required it."""

    path: RelPath
    language: Maybe[RepoLanguage] = None
    exports: Maybe[tuple[Export, ...]] = None
    imports: Maybe[tuple[Import, ...]] = None
    functions: Maybe[tuple[Function, ...]] = None
    classes: Maybe[tuple[Class, ...]] = None
    call_graph: Maybe[tuple[Call, ...]] = None

    @property
    def is_whole(self) -> bool:
        """Return whether no field was cut."""
        parts = (self.language, self.exports, self.imports, self.functions, self.classes, self.call_graph)
        return all(part is not None for part in parts)


class Importer(Contract):
    """A file with many imports."""

    path: RelPath
    import_count: Count


class Exporter(Contract):
    """A file with many exports."""

    path: RelPath
    export_count: Count


class MapSummary(Contract):
    """A summary of the repository."""

    total_files: Count
    languages: Mapping[RepoLanguage, Positive]
    top_importers: Annotated[tuple[Importer, ...], Field(max_length=5)]
    top_exporters: Annotated[tuple[Exporter, ...], Field(max_length=5)]

    @model_validator(mode="after")
    def _languages_cover_the_files(self) -> Self:
        expect(
            self, sum(self.languages.values()) == self.total_files, "languages adding up to total_files", "languages"
        )
        return self


class RepoMap(Contract):
    """All source files with their exports, imports and calls."""

    generated_at: Timestamp
    project_root: Annotated[str, Field(pattern=r"^/")]
    version: Positive
    size_cap_applied: Flag
    files: tuple[MappedFile, ...]
    summary: MapSummary

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        expect(self, len({file.path for file in self.files}) == len(self.files), "each path once", "files")
        expect(
            self,
            len(self.files) <= self.summary.total_files,
            "total_files of at least the files listed",
            "summary",
            "total_files",
        )
        if not self.size_cap_applied:
            expect(
                self,
                all(file.is_whole for file in self.files),
                "whole files unless the cap was applied",
                "size_cap_applied",
            )
            expect(
                self,
                len(self.files) == self.summary.total_files,
                "total_files equal to the files listed",
                "summary",
                "total_files",
            )
        return self
