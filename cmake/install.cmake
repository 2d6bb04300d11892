# `cmake --install`: library, its modules beside it, program, headers, suites, documents, examples, and the files that
# find_package(cosmati) and pkg-config read. The installed tree may be moved. Included after all targets are defined.
include(CMakePackageConfigHelpers)

# Before 1.0.0 each minor version has its own interface. Portable builds are copied by hand and have no version links.
if(NOT COSMATI_PORTABLE)
  set_target_properties(cosmati PROPERTIES VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()

# The headers without the library, for users who write their own kernels.
add_library(cosmati_headers INTERFACE)
set_target_properties(cosmati_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(cosmati_headers INTERFACE cxx_std_20)
foreach(target cosmati cosmati_headers)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

install(TARGETS cosmati cosmati_headers EXPORT cosmati_targets)
install(TARGETS cosmati_program)
if(TARGET cosmati_onednn)
  install(TARGETS cosmati_onednn LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(COSMATI_EMULATOR OR COSMATI_TESTS)
  install(TARGETS cosmati_emulator LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
else()  # only if it has been built; CMake cannot install a target that is not part of `all`
  install(PROGRAMS $<TARGET_FILE:cosmati_emulator> DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endif()
if(TARGET cosmati_mpi)
  install(TARGETS cosmati_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES include/cosmati.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/cosmati DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# The generator that `generate dcgan` uses by default.
install(FILES share/cosmati/dcgan-fashion.safetensors DESTINATION ${CMAKE_INSTALL_DATADIR}/cosmati OPTIONAL)
# Lists of problems for --suite; documents and examples, in the folders that their links to each other expect.
install(DIRECTORY bench/suites bench/models DESTINATION ${CMAKE_INSTALL_DATADIR}/cosmati FILES_MATCHING PATTERN "*.txt")
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} REGEX "/examples/CMakeLists.txt$" EXCLUDE)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cosmati)
install(EXPORT cosmati_targets NAMESPACE cosmati:: FILE cosmati-targets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/cosmati-config.cmake.in ${PROJECT_BINARY_DIR}/generated/cosmati-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/cosmati-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/cosmati-config.cmake
  ${PROJECT_BINARY_DIR}/generated/cosmati-config-version.cmake DESTINATION ${package_folder})

file(RELATIVE_PATH path_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/cosmati.pc.in ${PROJECT_BINARY_DIR}/generated/cosmati.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/cosmati.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
