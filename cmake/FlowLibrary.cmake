# flow: the one library users link, made of the folders' objects.
get_property(object_targets GLOBAL PROPERTY FLOW_OBJECT_TARGETS)
get_property(link_libraries GLOBAL PROPERTY FLOW_LINK_LIBRARIES)
list(REMOVE_DUPLICATES link_libraries)

add_library(flow)
add_library(flow::flow ALIAS flow)
foreach(object_target ${object_targets})
  target_sources(flow PRIVATE $<TARGET_OBJECTS:${object_target}>)
endforeach()
set_target_properties(flow PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                      SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(flow PUBLIC cxx_std_20)
target_link_libraries(flow PUBLIC Threads::Threads PRIVATE ${CMAKE_DL_LIBS} ${link_libraries})
# Programs have their main and exit wrapped (boxing/ranks/main_boundary.h). The wrappers belong to
# the program itself: with a static flow they are one of its objects, else a static library that is
# linked with it.
target_link_options(
  flow INTERFACE
  "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--wrap=main,--wrap=exit,-u,main>")
if(BUILD_SHARED_LIBS)
  target_link_libraries(flow INTERFACE flow_main)
  target_link_libraries(flow_main INTERFACE flow)  # a program may need flow for its wrappers alone
else()
  target_sources(flow PRIVATE $<TARGET_OBJECTS:flow_main>)
endif()
if(FLOW_SANITIZE)
  target_link_options(flow PUBLIC -fsanitize=${FLOW_SANITIZE})
endif()

# In the build tree the headers stand where they are written; <flow/flow.h> is a forwarding header.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/flow/flow.h
     CONTENT "#pragma once\n#include \"nn/flow.h\"\n")
target_include_directories(
  flow PUBLIC $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
              $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
