# The libraries that Mixtape needs; scripts/bootstrap installs them on Debian.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(MIXTAPE_PACKAGES REQUIRED IMPORTED_TARGET jansson libzip zlib ${feature_packages})

add_library(mixtape_dependencies INTERFACE)
target_link_libraries(mixtape_dependencies INTERFACE -Wl,--as-needed PkgConfig::MIXTAPE_PACKAGES
                                                     Threads::Threads ${CMAKE_DL_LIBS} m)
