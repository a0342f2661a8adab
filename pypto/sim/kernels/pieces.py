"""Functions made of pieces, which are optimised and turned into machine code once, as a whole.

Numba optimises every function by itself, emits machine code for it, and does both again in each of its callers: a tree
of small pieces costs its depth times its size, most of it for code that nobody ever calls. Here a piece stops at LLVM's
code, tidied up; the function that is called from outside links all pieces that it reaches, and only that is optimised.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite.binding import newpassmanagers
from numba import njit
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types import unliteral

_jit: Any = njit  # its stub lists the documented options only


class _Tidy(JITCodeLibrary):
    """Functions that are tidied up and no more when they come in: the rest is for the whole."""

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder(opt=0)
        passes = newpassmanagers.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        self._final_module.link_in(ll_module)


class _Piece(_Tidy):
    """Code that waits to be linked; it never runs by itself."""

    _with_callees: Any = None

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """With the pieces it calls, for callers that know nothing of pieces."""
        if self._with_callees is None:
            module = self._final_module.clone()
            _link(module, self._linking_libraries)
            for function in _defined(module):
                function.linkage = "linkonce_odr"
            self._with_callees = module
        return self._with_callees


class _Whole(_Tidy):
    """Code that is called, with every piece that it reaches."""

    def finalize(self) -> None:
        own = {function.name for function in _defined(self._final_module)}
        _link(self._final_module, self._linking_libraries)
        self._linking_libraries = []
        for function in _defined(self._final_module):
            if function.name not in own:
                # names of pieces are unique within one process only, and many processes fill the cache
                function.linkage = "internal"
        super().finalize()


class _WholeScalar(_Whole):
    """Code without loops that vector instructions could speed up."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(opt=2, loop_vectorize=False)
        passes.run(self._final_module, builder)


def _defined(module: Any) -> Iterator[Any]:
    return (function for function in module.functions if not function.is_declaration)


def _link(module: Any, libraries: Iterable[Any]) -> None:
    """Add all that ``libraries`` hold and reach.

    What is not a piece comes last: LLVM leaves out functions that nobody has called so far.
    """
    reached: dict[Any, None] = {}
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library in reached:
            continue
        reached[library] = None
        if isinstance(library, _Piece):
            module.link_in(library._final_module, preserve=True)
            waiting += library._linking_libraries
    for library in reached:
        if not isinstance(library, _Piece):
            module.link_in(library._get_module_for_linking(), preserve=True)


class _InLibrary(Compiler):
    """Numba's compiler, leaving its code in a library of the given kind."""

    library: type[JITCodeLibrary]

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _PieceCompiler(_InLibrary):
    library = _Piece

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.flags.no_compile = True
        result = super().compile_extra(func)
        name = result.fndesc.qualname.split(".")[-1]
        # what Numba knows the piece by; there is no code behind it that Python could call
        entry = make_function(result.fndesc.lookup_module(), name, "a piece", 0, result.environment, (result.library,))
        self.state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


class WholeCompiler(_InLibrary):
    """``pipeline_class`` of functions that are called from outside."""

    library = _Whole

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        with _garbage_kept():
            return super().compile_extra(func)


class ScalarCompiler(WholeCompiler):
    """The same for functions without loops that vector instructions could speed up: a third to compile."""

    library = _WholeScalar


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Compiling makes objects by the million and hardly a cycle: looking for them is a tenth of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def piece(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of functions that compiled code calls; ``options`` as for ``numba.njit``.

    A piece is compiled once for all the constants that it is called with: Numba alone would make a copy for every one,
    and LLVM puts them in anyway. Python may call a piece too; it is compiled as a whole then.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = _jit(
            no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_PieceCompiler, **options
        )(function)
        template = dispatcher.get_call_template

        @cache
        def whole() -> Any:
            return _jit(no_cfunc_wrapper=True, pipeline_class=ScalarCompiler, **options)(function)

        def remember(result: Any) -> None:
            dispatcher.overloads[tuple(result.signature.args)] = result

        dispatcher.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
        dispatcher.add_overload = remember  # and do not offer it to Python
        dispatcher._compile_for_args = lambda *args, **kws: whole()
        return dispatcher

    return decorate
