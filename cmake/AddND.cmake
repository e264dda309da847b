# nd_library(Name SOURCES... [LIBS other nd libraries and link flags] [DEPENDS tablegen targets])
# A static library of the compiler, with LLVM's flags, linked against libMLIR.so and libLLVM.so.
function(nd_library name)
  cmake_parse_arguments(ARG "" "" "LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(NOT name STREQUAL NDDialect)
    add_dependencies(${name} NDIncGen)
  endif()
  nd_precompiled(${name})
endfunction()

# nd_runtime_library(Name SOURCES... [LIBS ...]): linked into rank executables, so neither LLVM nor MLIR may appear in it.
function(nd_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
endfunction()

# nd_tool(name SOURCES... [LIBS nd libraries]): a thin main over lib/.
function(nd_tool name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} MLIR LLVM)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# The MLIR headers that nearly every file of the compiler includes, parsed once: 2 cores build this project.
function(nd_precompiled name)
  target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${name} REUSE_FROM NDPrecompiled)
endfunction()
