# Compiles wrong_programs.cc, which must fail, and looks for each text that the file says it fails
# with. ctest calls it: cmake -DBUILD=… -DSOURCE=… -P this.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target wrong_programs
                OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE rc)
if(rc EQUAL 0)
  message(FATAL_ERROR "it was compiled")
endif()
file(STRINGS ${SOURCE} lines REGEX "^// says: ")
list(LENGTH lines count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} texts are in ${SOURCE}")
endif()
foreach(line IN LISTS lines)
  string(REPLACE "// says: " "" text "${line}")
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "no error says: ${text}\n${output}")
  endif()
endforeach()
