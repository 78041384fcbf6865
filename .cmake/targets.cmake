# The three kinds of target of this project: a folder's library, the messages, an executable.

# rehearsal_library(NAME FOLDER [LINKS…]) makes one static library of all .cc files in and below
# FOLDER, except where a folder below is a library already. A folder without any becomes an
# interface library, so that headers alone are enough to begin with.
function(rehearsal_library name folder)
  cmake_path(ABSOLUTE_PATH folder NORMALIZE)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/(main|default_generator|fiber_context|wait_queue)\\.cc$")
  get_property(library_folders GLOBAL PROPERTY rehearsal_library_folders)
  foreach(source IN LISTS sources)
    foreach(other IN LISTS library_folders)
      cmake_path(IS_PREFIX other ${source} belongs_to_other)
      if(belongs_to_other)
        list(REMOVE_ITEM sources ${source})
      endif()
    endforeach()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY rehearsal_library_folders ${folder})
  if(sources)
    rehearsal_units(units ${name} ${sources})
    add_library(${name} STATIC ${units})
    set(scope PUBLIC)
    rehearsal_precompile(${units})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} ${scope} ${ARGN})
  target_compile_features(${name} ${scope} cxx_std_20)
  if(REHEARSAL_FUZZ AND sources AND NOT folder MATCHES "/(sim|scenarios)($|/)")
    target_compile_options(${name} PRIVATE ${rehearsal_fuzz_counters})
  endif()
  rehearsal_export(${name})
endfunction()

# rehearsal_units(RESULT NAME SOURCES…) sets RESULT to what is compiled in place of these sources:
# files that include some sources each, so that headers are read and templates made once for all of
# these. CMake's own unity builds leave out sources with options of their own, and here all have
# one: their precompiled headers. A source stays alone that says something to the preprocessor or
# the compiler that others must not hear, or that has the property SKIP_UNITY_BUILD_INCLUSION.
function(rehearsal_units result name)
  set(units)
  set(joined)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    file(STRINGS ${source} orders REGEX "^(#define|using namespace|using enum) " LIMIT_COUNT 1)
    get_source_file_property(skip ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(orders OR skip OR NOT REHEARSAL_UNITY)
      list(APPEND units ${source})
    else()
      list(APPEND joined ${source})
    endif()
  endforeach()
  list(LENGTH joined left)
  math(EXPR parts "(${left} + ${rehearsal_files_in_a_unit} - 1) / ${rehearsal_files_in_a_unit}")
  set(number 0)
  while(left GREATER 0)
    # All of about one size, so that no core waits for a long one.
    math(EXPR size "(${left} + ${parts} - ${number} - 1) / (${parts} - ${number})")
    math(EXPR number "${number} + 1")
    math(EXPR left "${left} - ${size}")
    list(SUBLIST joined 0 ${size} files)
    list(REMOVE_ITEM joined ${files})
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${name}_${number}.cc)
    set(text)
    foreach(file IN LISTS files)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    list(APPEND units ${unit})
  endwhile()
  set(${result} ${units} PARENT_SCOPE)
endfunction()
set(rehearsal_files_in_a_unit 10)

# A fuzzer goes on from those inputs that reach new places, or come nearer to them.
set(rehearsal_fuzz_counters -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp)

# Lets other projects link the target as rehearsal::X, where its name is rehearsal_X.
function(rehearsal_export name)
  string(REGEX REPLACE "^rehearsal_" "" exported ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  set_property(GLOBAL APPEND PROPERTY rehearsal_exported ${name})
endfunction()

# LibTorch's headers, compiled once, in three sizes.
function(rehearsal_precompiled_headers name)
  set(empty ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "")
  endif()
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${empty})
  target_link_libraries(${name} PRIVATE rehearsal_torch)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
set(tensor_headers <ATen/core/Tensor.h> <ATen/core/function_schema.h> <ATen/core/ivalue.h>
    <algorithm> <charconv> <functional> <map> <memory> <optional> <ranges> <string> <variant>
    <vector>)
rehearsal_precompiled_headers(rehearsal_torch_tensor ${tensor_headers})
set(autograd_headers ${tensor_headers} <torch/csrc/autograd/function.h> <torch/types.h>
    <torch/utils.h>)
rehearsal_precompiled_headers(rehearsal_torch_autograd ${autograd_headers})
# Not all of <torch/torch.h>: each file that includes its modules makes the tables of their virtual
# functions anew, even out of precompiled headers, in 3 s.
rehearsal_precompiled_headers(rehearsal_torch_api ${autograd_headers} <torch/autograd.h>
                              <torch/nn/modules/linear.h> <torch/optim.h>)

# Our own headers that many files reach, compiled once on top of these. A file takes the first that
# it reaches, so that it is compiled anew for no other header than without. Only Clang can build one
# such set on another.
set(own_headers_row tests/reference/row.h)
set(own_headers_cluster gtest/gtest.h core/api/worker.h sim/cluster.h)
set(own_headers_settings command_line/run_settings.h)
set(own_headers_calls core/api/calls.h)
set(own_sets torch_autograd_row torch_api_row torch_tensor_cluster torch_autograd_cluster
    torch_api_cluster torch_tensor_settings torch_tensor_calls torch_autograd_calls torch_api_calls)

# rehearsal_own_precompiled_headers(NAME LINKS…) compiles the sets of that name, where NAME is row,
# cluster, settings or calls, for programs that link LINKS.
function(rehearsal_own_precompiled_headers name)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR NOT CMAKE_GENERATOR MATCHES Ninja)
    return()
  endif()
  list(TRANSFORM own_headers_${name} REPLACE "(.+)" "<\\1>" OUTPUT_VARIABLE headers)
  foreach(set IN LISTS own_sets)
    if(set MATCHES "^(.*)_${name}$")
      set(below ${PROJECT_BINARY_DIR}/CMakeFiles/rehearsal_${CMAKE_MATCH_1}.dir/cmake_pch.hxx.pch)
      rehearsal_precompiled_headers(rehearsal_${set} ${headers})
      target_include_directories(rehearsal_${set} PRIVATE ${PROJECT_SOURCE_DIR})
      target_link_libraries(rehearsal_${set} PRIVATE ${ARGN})
      # Without the times of its headers ccache knows it again after a change of branches.
      target_compile_options(rehearsal_${set} PRIVATE -include-pch ${below}
                             -Xclang -fno-pch-timestamp)
      set_source_files_properties(
        ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/rehearsal_${set}.dir/cmake_pch.hxx.cxx
        PROPERTIES OBJECT_DEPENDS ${below})
    endif()
  endforeach()
endfunction()

# Sets RESULT to what FILE reaches of these: sizes of LibTorch's headers, names of our own sets.
# Each file is read once.
function(rehearsal_headers_reached RESULT file)
  get_property(known GLOBAL PROPERTY "rehearsal headers of ${file}" SET)
  if(known)
    get_property(reached GLOBAL PROPERTY "rehearsal headers of ${file}")
    set(${RESULT} "${reached}" PARENT_SCOPE)
    return()
  endif()
  set_property(GLOBAL PROPERTY "rehearsal headers of ${file}" "")  # for an include that leads back
  set(reached)
  set(includes)
  if(EXISTS ${file})
    file(STRINGS ${file} includes REGEX "^#include ")
  endif()
  foreach(include IN LISTS includes)
    if(include MATCHES "<torch/(torch\\.h|nn|optim)")
      list(APPEND reached api)
    elseif(include MATCHES
           "<(torch/(csrc/autograd/|(types|utils|autograd)\\.h)|ATen/(ATen|Functions)\\.h)")
      list(APPEND reached autograd)
    elseif(include MATCHES "<(ATen|c10|torch)/")
      list(APPEND reached tensor)
    elseif(include MATCHES "\"(.*)\"")
      set(header ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
      if(NOT EXISTS ${header})
        cmake_path(REPLACE_FILENAME file ${CMAKE_MATCH_1} OUTPUT_VARIABLE header)
      endif()
      rehearsal_headers_reached(more ${header})
      list(APPEND reached ${more})
    endif()
  endforeach()
  foreach(name IN ITEMS row cluster settings calls)
    list(GET own_headers_${name} -1 header)
    if(file STREQUAL ${PROJECT_SOURCE_DIR}/${header})
      list(APPEND reached ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES reached)
  set_property(GLOBAL PROPERTY "rehearsal headers of ${file}" "${reached}")
  set(${RESULT} "${reached}" PARENT_SCOPE)
endfunction()

# Sets RESULT to the largest of these that SOURCE reaches through headers of this repository, such
# as torch_api, torch_tensor_calls or none. It looks when CMake runs; an outdated answer costs
# compile time only.
function(rehearsal_large_headers_of RESULT source)
  rehearsal_headers_reached(reached ${source})
  set(size none)
  foreach(larger IN ITEMS tensor autograd api)
    if(larger IN_LIST reached)
      set(size ${larger})
    endif()
  endforeach()
  set(${RESULT} none PARENT_SCOPE)
  if(NOT size STREQUAL none)
    set(${RESULT} torch_${size} PARENT_SCOPE)
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    return()
  endif()
  foreach(name IN ITEMS row cluster settings calls)
    if(torch_${size}_${name} IN_LIST own_sets AND name IN_LIST reached
       AND (source MATCHES "/tests/" OR NOT name STREQUAL cluster))  # It has GoogleTest.
      set(${RESULT} torch_${size}_${name} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# rehearsal_precompile(SOURCES…) lets each source use the precompiled headers that it reaches. CMake
# itself knows one set for a whole target, and loading a larger set than needed costs seconds too.
# Ninja alone knows of files that another target makes.
function(rehearsal_precompile)
  rehearsal_precompile_in(${CMAKE_CURRENT_SOURCE_DIR} ${ARGN})
endfunction()

# The same of sources, by their full paths, of targets that another DIRECTORY makes.
function(rehearsal_precompile_in directory)
  if(NOT CMAKE_GENERATOR MATCHES Ninja)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    rehearsal_large_headers_of(headers ${source})
    if(NOT headers STREQUAL none)
      set(header ${PROJECT_BINARY_DIR}/CMakeFiles/rehearsal_${headers}.dir/cmake_pch.hxx)
      set(compiled ${header}.gch)
      set(options "-Winvalid-pch;-include;${header}")
      if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
        set(compiled ${header}.pch)
        set(options "-include-pch;${compiled}")
      endif()
      set_source_files_properties(${source} DIRECTORY ${directory} PROPERTIES
                                  OBJECT_DEPENDS ${compiled} COMPILE_OPTIONS "${options}")
    endif()
  endforeach()
endfunction()

# Leaves a target without optimisation in preset dev, where it computes little itself: it is
# compiled in two thirds of the time, a test of templates in half. Clang refuses precompiled headers
# that were made with optimisation, for the sake of one macro, unless told.
function(rehearsal_not_optimised name)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_BUILD_TYPE STREQUAL Debug
     AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-O1")
    target_compile_options(${name} PRIVATE -O0 -Xclang -fno-validate-pch)
  endif()
endfunction()

# rehearsal_gcc_warns_falsely(SOURCES…): GCC 12 warns of these once std::optional and std::string
# are inlined at -O2.
function(rehearsal_gcc_warns_falsely)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -Wno-maybe-uninitialized
                 -Wno-array-bounds)
  endif()
endfunction()

# rehearsal_messages(NAME FILES…) compiles .proto files. The library does not see LibTorch's
# headers.
function(rehearsal_messages name)
  set(output ${PROJECT_BINARY_DIR}/messages)
  file(MAKE_DIRECTORY ${output})
  set(sources)
  foreach(file IN LISTS ARGN)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${output}/${path})
    add_custom_command(
      OUTPUT ${stem}.cc ${stem}.h
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${output} ${file}
      DEPENDS ${file} VERBATIM)
    list(APPEND sources ${stem}.cc ${stem}.h)
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(${name} PRIVATE -Wno-error)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} SYSTEM ${scope} $<BUILD_INTERFACE:${output}>)
  rehearsal_export(${name})
  target_link_libraries(${name} ${scope} protobuf::libprotobuf)
endfunction()

# rehearsal_executable(NAME SOURCES LINKS) where SOURCES and LINKS are lists in quotes.
function(rehearsal_executable name sources links)
  rehearsal_units(units ${name} ${sources})
  add_executable(${name} ${units})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${links})
  rehearsal_precompile(${units})
endfunction()
