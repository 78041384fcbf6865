# The compiler of a preset that asks for Clang: it compiles a file of templates without optimisation
# in 40 % of GCC's time, so that the tests with sanitizers are built with it. Clang 16 is the first
# that knows all of C++20 that is used here. Where there is none, the system's compiler is used.
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
