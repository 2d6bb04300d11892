# The batch-innermost kernels: one source compiled for each instruction set, chosen when the program runs.
file(GLOB chwn_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cpu/chwn/*.cpp)
foreach(level v3 v4)
  if(chwn_sources)
    add_library(cosmati_chwn_${level} OBJECT ${chwn_sources})
    target_link_libraries(cosmati_chwn_${level} PRIVATE cosmati_flags)
    set_target_properties(cosmati_chwn_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(cosmati_chwn_${level} PRIVATE -march=x86-64-${level}
      $<$<STREQUAL:${level},v4>:-mprefer-vector-width=512>)
    target_compile_definitions(cosmati_chwn_${level} PRIVATE COSMATI_ISA=${level})
    target_sources(cosmati PRIVATE $<TARGET_OBJECTS:cosmati_chwn_${level}>)
  endif()
endforeach()
