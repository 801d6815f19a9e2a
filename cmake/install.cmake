# What `cmake --install` puts under the prefix: the weir command, the public headers, one archive and the
# CMake package. The folders of src/ are merged into that archive: how Weir is cut inside is not
# the user's business. What they link from outside is found again by weirConfig.cmake.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_property(todo GLOBAL PROPERTY weir_libraries)  # and what these link
set(merged)
set(outside)
add_library(libweir STATIC)
while(todo)
  list(POP_FRONT todo next)
  if(NOT next MATCHES "^weir_")
    list(APPEND outside ${next})
  elseif(NOT next IN_LIST merged)
    list(APPEND merged ${next})
    get_target_property(type ${next} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      target_sources(libweir PRIVATE $<TARGET_OBJECTS:${next}>)
    endif()
    get_target_property(links ${next} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND todo ${links})
    endif()
  endif()
endwhile()
list(REMOVE_DUPLICATES outside)
# Headers alone, and none of the public ones includes them.
list(REMOVE_ITEM outside CLI11::CLI11 nlohmann_json::nlohmann_json)

set_target_properties(libweir PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir LINKER_LANGUAGE CXX)
target_link_libraries(libweir INTERFACE ${outside})
target_compile_features(libweir INTERFACE cxx_std_20)
set_target_properties(weir PROPERTIES INSTALL_RPATH ${WEIR_TORCH}/lib)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
weir_torch_version(WEIR_TORCH_VERSION)
configure_file(cmake/weirConfig.cmake.in weirConfig.cmake @ONLY)
write_basic_package_version_file(weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS weir RUNTIME)
install(TARGETS libweir EXPORT weirTargets ARCHIVE INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/weir TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE TYPE DOC)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir})
install(FILES cmake/weir_torch.cmake ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake DESTINATION ${package_dir})
