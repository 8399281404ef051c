# A folder of the library is one object library flow_<folder>, a room of it (ops/linear) one of its
# own, flow_ops_linear; FlowLibrary.cmake joins them.

# flow_add_folder(<folder> [HEADERS ...] [PRIVATE_HEADERS ...] [SOURCES ...] [CUDA_SOURCES ...]
#                 [NO_CUDA_SOURCES ...] [LIBRARIES ...])
# HEADERS are installed; PRIVATE_HEADERS serve other folders and tests only. LIBRARIES are used by
# this folder's sources and linked into flow, invisible to users. CUDA_SOURCES are compiled with
# FLOW_CUDA, NO_CUDA_SOURCES in their place without it.
function(flow_add_folder folder)
  cmake_parse_arguments(
    arg "" "" "HEADERS;PRIVATE_HEADERS;SOURCES;CUDA_SOURCES;NO_CUDA_SOURCES;LIBRARIES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "flow_add_folder(${folder}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(header ${arg_HEADERS})
    set_property(GLOBAL APPEND PROPERTY FLOW_PUBLIC_HEADERS ${folder}/${header})
  endforeach()
  foreach(header ${arg_HEADERS} ${arg_PRIVATE_HEADERS})
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      message(FATAL_ERROR "${folder}/CMakeLists.txt lists ${header}, which does not exist")
    endif()
  endforeach()
  if(FLOW_WITH_CUDA)
    set(sources ${arg_SOURCES} ${arg_CUDA_SOURCES})
  else()
    set(sources ${arg_SOURCES} ${arg_NO_CUDA_SOURCES})
  endif()
  if(FLOW_WITH_CUDA)
    flow_set_cuda_properties(${arg_CUDA_SOURCES})
  endif()
  if(sources)
    string(REPLACE "/" "_" name ${folder})
    flow_add_objects(flow_${name} ${sources})
    target_link_libraries(flow_${name} PRIVATE ${arg_LIBRARIES})
    set_property(GLOBAL APPEND PROPERTY FLOW_LINK_LIBRARIES ${arg_LIBRARIES})
  endif()
endfunction()

# flow_set_cuda_properties(sources...): lets C++ files find CUDA's headers, which all others are
# kept from; where CUDA is emulated, .cu files are C++ too.
function(flow_set_cuda_properties)
  foreach(source ${ARGN})
    if(source MATCHES "\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
                                                       "-isystem;${FLOW_CUDA_INCLUDE_DIR}")
    elseif(FLOW_CUDA_EMULATED)
      set_source_files_properties(
        ${source} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
                             "-x;c++;-isystem;${FLOW_CUDA_INCLUDE_DIR}")
    endif()
  endforeach()
endfunction()

# flow_add_isa_kernels(<folder> files...): compiles each file once per instruction set of
# FLOW_CPU_ISAS with FLOW_ISA set to its position in flow_isa_names. The files choose their own
# instruction set from it by pragmas (ops/kernel/isa_begin.h), so that what they include from
# elsewhere stays compiled for every CPU.
function(flow_add_isa_kernels folder)
  if(NOT ARGN)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  foreach(isa ${flow_isas})
    flow_add_part(flow_${name}_${isa} ${ARGN})
    flow_make_isa_objects(flow_${name}_${isa} ${isa})
  endforeach()
endfunction()

# flow_make_isa_objects(<target> <isa>): compiles the target's sources as kernels of one instruction
# set.
function(flow_make_isa_objects target isa)
  list(FIND flow_isa_names ${isa} level)
  target_compile_definitions(${target} PRIVATE FLOW_ISA=${level})
  target_link_libraries(${target} PRIVATE flow_kernel_flags)
  flow_use_pch(${target} flow_kernel_pch)
endfunction()

# flow_tell_isas(sources...): lets the sources know which instruction sets are compiled
# (FLOW_ISA_VARIANTS of ops/cpu_features.h). Those that do not ask compile alike for any choice.
function(flow_tell_isas)
  set_property(
    SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS FLOW_COMPILED_ISAS=${flow_compiled_isas}
                                   FLOW_REQUIRED_ISA=${flow_required_isa})
endfunction()

# flow_add_objects(<target> sources...): an object library that becomes part of flow.
function(flow_add_objects target)
  flow_add_part(${target} ${ARGN})
  flow_use_pch(${target} flow_pch)
endfunction()

function(flow_add_part target)
  add_library(${target} OBJECT ${ARGN})
  if(BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_link_libraries(${target} PRIVATE flow_build_flags)
  flow_map_prefixes(${target} flow:)
  set_property(GLOBAL APPEND PROPERTY FLOW_OBJECT_TARGETS ${target})
endfunction()

# flow_map_prefixes(<target> <as>): what stands in place of this project's root in the lines that
# reports name: "flow:" for the library, which lets a report tell flow's own lines from the user's
# (core/site.h), and nothing for its programs. There are two prefixes, as ccache makes paths
# relative to the build.
function(flow_map_prefixes target as)
  file(RELATIVE_PATH root ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})  # ends with a slash
  foreach(prefix ${PROJECT_SOURCE_DIR}/ ${root})
    target_compile_options(${target}
                           PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${prefix}=${as}>)
  endforeach()
endfunction()
