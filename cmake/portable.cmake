# Builds binaries for other machines, which need only libstdc++ and a C library at least as new as this machine's.
# The libraries that libcosmati links are copied beside it, and the module that links oneDNN is left out. (Debian's
# static libraries cannot be linked into a shared library.) Included after the libraries have been found.
option(COSMATI_PORTABLE "Bring along what other machines may lack; carry bin/ and lib/ together" OFF)
if(COSMATI_PORTABLE)
  set(DNNL_LIBRARY "")
  set(CMAKE_BUILD_RPATH "$ORIGIN;$ORIGIN/../lib")
  add_link_options(-s)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  foreach(library ${PNG_LIBRARY} ${ZLIB_LIBRARIES} ${BOOST_CONTEXT_LIBRARY} ${GOMP_LIBRARY})
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE header COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "SONAME +([^\n]+)" soname "${header}")
    file(REAL_PATH ${library} file)
    file(COPY_FILE ${file} ${CMAKE_BINARY_DIR}/lib/${CMAKE_MATCH_1} ONLY_IF_DIFFERENT)
  endforeach()
endif()
