# Defines the target rehearsal_torch: LibTorch's headers, torch_cpu and c10. Also part of the
# installed package. find_package(Torch) is not used because it demands a CUDA toolkit. A LibTorch
# that the user names (CMAKE_PREFIX_PATH) wins over the one that `./dev setup` fetched, or that the
# installed library was built with; where LIBTORCH names one, no other will do.

# Sets RESULT to the first of the candidate folders that holds LibTorch, or to "".
function(rehearsal_find_libtorch RESULT)
  set(prefixes ${LIBTORCH} $ENV{LIBTORCH})
  if(NOT prefixes)
    string(REPLACE ":" ";" environment_prefixes "$ENV{CMAKE_PREFIX_PATH}")
    set(prefixes ${CMAKE_PREFIX_PATH} ${environment_prefixes} ${ARGN})
  endif()
  foreach(prefix IN LISTS prefixes)
    # torch.utils.cmake_prefix_path names share/cmake below the folder that is wanted.
    foreach(candidate ${prefix} ${prefix}/torch ${prefix}/../.. ${prefix}/libtorch)
      if(EXISTS ${candidate}/include/torch/csrc/api/include/torch/torch.h
         AND EXISTS ${candidate}/lib/libtorch_cpu.so)
        get_filename_component(found ${candidate} REALPATH)
        set(${RESULT} ${found} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  set(${RESULT} "" PARENT_SCOPE)
endfunction()

file(GLOB fetched_libtorch ${CMAKE_CURRENT_LIST_DIR}/../.deps/libtorch-*/torch)
rehearsal_find_libtorch(libtorch ${fetched_libtorch} ${REHEARSAL_BUILT_WITH})
if(NOT libtorch)
  set(named ${LIBTORCH} $ENV{LIBTORCH})
  list(REMOVE_DUPLICATES named)
  if(named)
    message(FATAL_ERROR "There is no LibTorch in '${named}', which LIBTORCH names.")
  endif()
  message(FATAL_ERROR "LibTorch is missing. Set LIBTORCH to its folder; in Rehearsal's own folder, "
                      "./dev setup fetches one.")
endif()
# Its version, such as 2.11.0; LibTorch 2.9 and earlier keep the header at the second place.
set(libtorch_version)
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT libtorch_version AND EXISTS ${libtorch}/include/${header})
    file(STRINGS ${libtorch}/include/${header} numbers
         REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX MATCHALL " [0-9]+" libtorch_version "${numbers}")
    string(REPLACE "; " "." libtorch_version "${libtorch_version}")
    string(STRIP "${libtorch_version}" libtorch_version)
  endif()
endforeach()
message(STATUS "LibTorch ${libtorch_version}: ${libtorch}")

# LibTorch ships the headers of an older protobuf. A folder that holds only a link to the system's
# own comes before them.
find_path(PROTOBUF_HEADERS google/protobuf/message.h PATHS ${Protobuf_INCLUDE_DIRS} REQUIRED
          NO_DEFAULT_PATH)
set(first_headers ${CMAKE_BINARY_DIR}/rehearsal_first_headers)
file(MAKE_DIRECTORY ${first_headers})
file(CREATE_LINK ${PROTOBUF_HEADERS}/google ${first_headers}/google SYMBOLIC)

add_library(rehearsal_c10 SHARED IMPORTED GLOBAL)
set_target_properties(rehearsal_c10 PROPERTIES IMPORTED_LOCATION ${libtorch}/lib/libc10.so)
add_library(rehearsal_torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(rehearsal_torch_cpu PROPERTIES
                      IMPORTED_LOCATION ${libtorch}/lib/libtorch_cpu.so)

add_library(rehearsal_torch INTERFACE IMPORTED GLOBAL)
set_target_properties(rehearsal_torch PROPERTIES libtorch_version "${libtorch_version}")
target_include_directories(rehearsal_torch SYSTEM INTERFACE
  ${first_headers} ${libtorch}/include ${libtorch}/include/torch/csrc/api/include)
target_link_libraries(rehearsal_torch INTERFACE rehearsal_torch_cpu rehearsal_c10 Threads::Threads)
# libtorch_cpu.so finds these two libraries by its own run path; the linker has to be told.
target_link_options(rehearsal_torch INTERFACE
  -Wl,-rpath-link,${libtorch}/lib -Wl,-rpath-link,${libtorch}/../nvidia/cu13/lib)
