# Installs this build into a folder of its own, builds the how-to's example against it as a user's
# project outside the tree, runs it, and packs. ctest calls it: cmake -DBUILD=… -DSOURCE=… -P this.
set(prefix ${BUILD}/installed)
set(example ${BUILD}/installed_example)
file(REMOVE_RECURSE ${prefix} ${example})

# run(TEXT COMMAND…): fails with the command's output if the command fails.
function(run text)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${text} failed (${rc}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("install" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
file(COPY ${SOURCE}/tests/how_to/example/ DESTINATION ${example}/project)
run("configuring the example" ${CMAKE_COMMAND} -G Ninja -S ${example}/project -B ${example}/build
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug
    "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("building the example" ${CMAKE_COMMAND} --build ${example}/build)
run("the example" ${example}/build/training_test
    --gtest_filter=Training.HoldsInOneRun:MendedTraining.*)
run("the program" ${prefix}/bin/rehearsal --version)
if(NOT output MATCHES "^rehearsal ")
  message(FATAL_ERROR "rehearsal --version printed: ${output}")
endif()

# A component that does not exist is refused by name.
file(WRITE ${example}/wrong/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES CXX)
find_package(Rehearsal CONFIG REQUIRED COMPONENTS simulator)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${example}/wrong -B ${example}/wrong/build
                        -DCMAKE_PREFIX_PATH=${prefix}
                OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE rc)
if(rc EQUAL 0 OR NOT output MATCHES "there is no component 'simulator'")
  message(FATAL_ERROR "an unknown component was not refused: ${output}")
endif()
