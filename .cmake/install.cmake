# What `cmake --install` copies, and what `cpack` packs: the libraries, their headers as
# <rehearsal/…>, the package that find_package(Rehearsal CONFIG) finds, and the program.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(exported GLOBAL PROPERTY rehearsal_exported)
set(examples rehearsal_text rehearsal_models rehearsal_scenarios rehearsal_test_proxy)
list(REMOVE_ITEM exported ${examples})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Rehearsal)
add_custom_target(installable)
add_dependencies(installable ${exported} rehearsal)
install(TARGETS ${exported} EXPORT RehearsalTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/rehearsal
        OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/rehearsal
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT RehearsalTargets NAMESPACE rehearsal:: DESTINATION ${package})

# LibTorch stays where it is: the program remembers the place.
set_target_properties(rehearsal PROPERTIES INSTALL_RPATH ${libtorch}/lib)
install(TARGETS rehearsal RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES sim/rehearsal-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearsal)

configure_package_config_file(.cmake/RehearsalConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/RehearsalConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RehearsalConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RehearsalConfig.cmake
              ${PROJECT_BINARY_DIR}/RehearsalConfigVersion.cmake .cmake/libtorch.cmake
        DESTINATION ${package})

# Headers name each other from the root of the repository; installed ones by <rehearsal/…>, so that
# they meet nobody else's `core/`.
install(CODE "set(source [[${PROJECT_SOURCE_DIR}]])
set(include [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT .cmake/install_headers.cmake)

set(CPACK_PACKAGE_NAME rehearsal)
set(CPACK_PACKAGE_CONTACT "Rehearsal")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
# LibTorch is no Debian package: the program looks where it was built, or in LD_LIBRARY_PATH.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libboost-fiber1.81-dev | libboost-fiber-dev, libprotobuf-dev, libxxhash-dev, \
nlohmann-json3-dev, libspdlog-dev, libcli11-dev")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgtest-dev, mold")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
