# Installs this build into a folder of its own, builds the how-to's example against it as a user's
# project outside the tree, runs it, and tries wrong uses of the package. ctest calls it:
# cmake -DBUILD=… -DSOURCE=… -DCOMPILER=… -DFLAGS=… -P this.
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
# Nobody debugs it.
run("configuring the example" ${CMAKE_COMMAND} -G Ninja -S ${example}/project -B ${example}/build
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug
    "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_CXX_FLAGS_DEBUG=-O0)
run("building the example" ${CMAKE_COMMAND} --build ${example}/build)
run("the example" ${example}/build/training_test
    --gtest_filter=Training.HoldsInOneRun:MendedTraining.*)
run("the shop" ${example}/build/shop_test --gtest_filter=ShopInTurn.OrdersOnce)
run("the prefetcher" ${example}/build/prefetch_test --gtest_filter=Prefetcher.Holds)
run("the table" ${example}/build/placed_test --gtest_filter=Placed.InOrder)
run("the program" ${prefix}/bin/rehearsal --version)
if(NOT output MATCHES "^rehearsal ")
  message(FATAL_ERROR "rehearsal --version printed: ${output}")
endif()

# configure(NAME TEXT OPTIONS…): configures a project whose CMakeLists.txt has TEXT; sets rc and
# output.
function(configure name text)
  file(WRITE ${example}/${name}/CMakeLists.txt
       "cmake_minimum_required(VERSION 3.25)\nproject(${name} LANGUAGES CXX)\n${text}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${example}/${name} -B ${example}/${name}/build
                          -DCMAKE_PREFIX_PATH=${prefix} ${ARGN}
                  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE rc)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(output "${output}" PARENT_SCOPE)
  set(rc ${rc} PARENT_SCOPE)
endfunction()

# refuses(NAME SENTENCE TEXT OPTIONS…): fails unless that project is refused with the sentence.
function(refuses name sentence)
  configure(${name} ${ARGN})
  if(rc EQUAL 0 OR NOT output MATCHES "${sentence}")
    message(FATAL_ERROR "${name} was not refused (${rc}): ${output}")
  endif()
endfunction()

set(find "find_package(Rehearsal CONFIG REQUIRED COMPONENTS")
refuses(component "there is no component 'simulator'" "${find} simulator)")
refuses(internal "there is no component 'session'" "${find} session)")
refuses(nowhere "There is no LibTorch in '/nowhere'" "${find} sim)" -DLIBTORCH=/nowhere)

# Two folders of one project may each look for it.
file(WRITE ${example}/twice/one/CMakeLists.txt "${find} sim)\n")
file(WRITE ${example}/twice/two/CMakeLists.txt "${find} real_net)\n")
configure(twice "add_subdirectory(one)\nadd_subdirectory(two)")
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "two folders cannot both look for it: ${output}")
endif()
