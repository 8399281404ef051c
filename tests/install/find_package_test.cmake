# Run as a script: fails when any step fails or the user's program does not print flow's version.
file(REMOVE_RECURSE ${WORK_DIR})

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("cmake --install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run("configuring the user's project" ${CMAKE_COMMAND} -S ${USER_DIR} -B ${WORK_DIR}/build
    -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run("building the user's project" ${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run("the user's program" ${WORK_DIR}/build/user_program)
if(NOT output MATCHES "^flow 0\\.1\\.0\n$")
  message(FATAL_ERROR "the user's program printed: ${output}")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
