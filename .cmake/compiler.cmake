# The compiler of most presets is Clang, where there is one: it compiles a file of templates in half
# of GCC's time, without optimisation in 40 %. Clang 16 is the first that knows all of C++20 that is
# used here. GCC compiles everything where there is no Clang; the preset `tsan` and the user's
# project that the tests build keep it in use.
option(REHEARSAL_CLANG "Compile with Clang if there is one" OFF)
if(REHEARSAL_CLANG AND NOT CMAKE_CXX_COMPILER)
  find_program(REHEARSAL_CLANG_PATH NAMES clang++-19 clang++-18 clang++-17 clang++-16 clang++)
  if(REHEARSAL_CLANG_PATH)
    execute_process(COMMAND ${REHEARSAL_CLANG_PATH} -dumpversion OUTPUT_VARIABLE clang_version
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(clang_version VERSION_GREATER_EQUAL 16)
      set(CMAKE_CXX_COMPILER ${REHEARSAL_CLANG_PATH})
    endif()
  endif()
endif()
